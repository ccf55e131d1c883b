// `npm run docs` writes what is printed from elsewhere: .env.example, the tables of docs/configuration.md, docs/licences.md,
// docs/policy.schema.json.
import { readFileSync, writeFileSync } from "node:fs";
import { toPolicyJsonSchema } from "../src/config/policy/json-schema.ts";
import { printConfigurationTables, printEnvExample } from "../src/config/reference.ts";
import { printLicences } from "./licences.ts";

const PATH = "docs/configuration.md";
const [head] = readFileSync(PATH, "utf8").split(/(?<=<!-- printed by npm run docs -->\n)/);
writeFileSync(PATH, `${head}\n${printConfigurationTables()}`);
writeFileSync(".env.example", printEnvExample());
writeFileSync("docs/licences.md", printLicences(readFileSync("package-lock.json", "utf8")));
writeFileSync("docs/policy.schema.json", `${JSON.stringify(toPolicyJsonSchema(), null, 2)}\n`);
