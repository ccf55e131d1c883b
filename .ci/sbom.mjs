// `npm run sbom` prints a bill of materials (CycloneDX) of the shipped packages. It takes npm's full list and removes
// the packages that the lockfile marks as development only: `npm sbom --omit dev` (npm 11.19) also drops packages that
// development shares.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const ARGS = ["sbom", "--sbom-format=cyclonedx", "--sbom-type=application", "--package-lock-only", "--loglevel=error"];

const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8"));
const bom = JSON.parse(execFileSync("npm", ARGS, { encoding: "utf8", maxBuffer: 2 ** 26 }));
const { component } = bom.metadata;
component.name = packages[""].name;
const shipped = new Set([component["bom-ref"]]);
for (const [path, { name, version, dev }] of Object.entries(packages)) {
  if (path !== "" && dev !== true) shipped.add(`${name ?? path.replace(/^.*node_modules\//, "")}@${version}`);
}
bom.components = bom.components.filter((it) => shipped.has(it["bom-ref"]));
bom.dependencies = bom.dependencies
  .filter(({ ref }) => shipped.has(ref))
  .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((it) => shipped.has(it)) }));
process.stdout.write(`${JSON.stringify(bom, null, 2)}\n`);
