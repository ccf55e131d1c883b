// `npm run docs` writes what is printed from a table of the sources: .env.example, and the tables of docs/configuration.md.
import { readFileSync, writeFileSync } from "node:fs";
import { printConfigurationTables, printEnvExample } from "../src/config/reference.ts";

const PATH = "docs/configuration.md";
const [head] = readFileSync(PATH, "utf8").split(/(?<=<!-- printed by npm run docs -->\n)/);
writeFileSync(PATH, `${head}\n${printConfigurationTables()}`);
writeFileSync(".env.example", printEnvExample());
