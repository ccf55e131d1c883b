// `npm run docs` writes the generated parts of the documentation: .env.example, the tables of docs/configuration.md,
// docs/licences.md, docs/policy.schema.json, and the commands and shortcuts of manifest.json.
import { readFileSync, writeFileSync } from "node:fs";
import { toShortcuts, toSlashCommands } from "../adapters/slack/install/slash-commands.ts";
import { COMMANDS } from "../src/commands/commands.ts";
import { toPolicyJsonSchema } from "../src/config/policy/json-schema.ts";
import { printConfigurationTables, printEnvExample } from "../src/config/reference.ts";
import { PLATFORMS } from "../src/platforms.ts";
import { loadModules } from "../src/port/module.ts";
import { printLicences } from "./licences.ts";

const modules = await loadModules(PLATFORMS);

const PATH = "docs/configuration.md";
const [head] = readFileSync(PATH, "utf8").split(/(?<=<!-- printed by npm run docs -->\n)/);
writeFileSync(PATH, `${head}\n${printConfigurationTables(modules)}`);
writeFileSync(".env.example", printEnvExample(modules));
writeFileSync("docs/licences.md", printLicences(readFileSync("package-lock.json", "utf8")));
writeFileSync("docs/policy.schema.json", `${JSON.stringify(toPolicyJsonSchema(), null, 2)}\n`);
const manifest = readFileSync("manifest.json", "utf8");
const print = (list) => JSON.stringify(list, null, 2).replaceAll("\n", "\n    ");
writeFileSync(
  "manifest.json",
  manifest
    .replace(/(?<="slash_commands": )\[[^]*?\n {4}\]/, () => print(toSlashCommands(COMMANDS)))
    .replace(/(?<="shortcuts": )\[[^]*?\n {4}\]/, () => print(toShortcuts(COMMANDS))),
);
