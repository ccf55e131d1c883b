interface Package {
  /** The package itself, where it is installed under another name. */
  name?: string;
  version?: string;
  license?: string;
  dev?: boolean;
}

/** Licences under which everything may be used and passed on with this project, as names of SPDX. */
const ALLOWED = new Set([
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
  "MIT-0",
  "Zlib",
]);
/** What else is allowed, and why. */
const EXCEPTIONS: readonly { packages: RegExp; licence: string; why: string }[] = [
  {
    packages: /^@img\/sharp-/,
    licence: "LGPL-3.0-or-later",
    why: "libvips, a library of its own that is loaded when a picture is decoded and can be replaced",
  },
  { packages: /^duck$/, licence: "BSD", why: "its licence file is the BSD licence with two clauses" },
  { packages: /^(lightningcss|axe-core)/, licence: "MPL-2.0", why: "development only, unchanged" },
  {
    packages: /^@modelcontextprotocol\/server-/,
    licence: "SEE LICENSE IN LICENSE",
    why: "development only: servers of the protocol's own project that tests run",
  },
];

/** The packages of a lockfile whose licence is not allowed, each with it. */
export function findForbidden(lockfile: string): string[] {
  return readPackages(lockfile)
    .filter(({ name, license }) => !isAllowed(name, license))
    .map(({ name, license }) => `${name}: ${license ?? "none"}`);
}

function isAllowed(name: string, expression = ""): boolean {
  const holds = (licence: string) =>
    ALLOWED.has(licence) || EXCEPTIONS.some((it) => it.licence === licence && it.packages.test(name));
  // No package of a lockfile has mixed the two so far, and one that did would not pass.
  const words = expression.replaceAll(/[()]/g, "");
  return words.includes(" OR ") ? words.split(" OR ").some(holds) : words.split(" AND ").every(holds);
}

/** docs/licences.md: what is shipped, a line for each package and version. */
export function printLicences(lockfile: string): string {
  const shipped = readPackages(lockfile).filter(({ dev }) => dev !== true);
  const rows = new Set(
    shipped.map(({ name, version, license }) => `| ${name} | ${version} | ${license ?? "none"} |\n`),
  );
  const reasons = EXCEPTIONS.map(({ licence, packages, why }) => `| ${licence} | \`${packages.source}\` | ${why} |\n`);
  return `# Licences

Palaver is under the [MIT licence](../LICENSE). \`npm run docs\` prints this page from \`package-lock.json\`: the packages that are installed with the service, on any kind of machine, and the licence that each states. A test allows ${[...ALLOWED].join(", ")} and what stands under *Exceptions*, in packages for development too. \`npm run sbom\` prints the same as a bill of materials (CycloneDX).

| package | version | licence |
|---|---|---|
${[...rows].toSorted(byName).join("")}
## Exceptions

| licence | packages | why |
|---|---|---|
${reasons.join("")}`;
}

function byName(a: string, b: string): number {
  return a < b ? -1 : 1;
}

function readPackages(lockfile: string): (Package & { name: string })[] {
  const { packages } = JSON.parse(lockfile) as { packages: Record<string, Package> };
  return Object.entries(packages).flatMap(([path, entry]) =>
    path === "" ? [] : [{ ...entry, name: entry.name ?? path.replace(/^.*node_modules\//, "") }],
  );
}
