interface Package {
  /** The package's real name, if it is installed under another one. */
  name?: string;
  version?: string;
  license?: string;
  dev?: boolean;
}

/** SPDX names of licences that allow using and distributing everything with this project. */
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
/** Other accepted licences, with the reason. */
const EXCEPTIONS: readonly { packages: RegExp; licence: string; why: string }[] = [
  {
    packages: /^@img\/sharp-/,
    licence: "LGPL-3.0-or-later",
    why: "libvips, a separate, replaceable library that decodes images",
  },
  { packages: /^duck$/, licence: "BSD", why: "its licence file is the BSD licence with two clauses" },
  { packages: /^(lightningcss|axe-core)/, licence: "MPL-2.0", why: "development only, unchanged" },
  {
    packages: /^@modelcontextprotocol\/server-/,
    licence: "SEE LICENSE IN LICENSE",
    why: "development only: servers that tests run",
  },
];

/** Returns the packages of a lockfile whose licence is not allowed, each with its licence. */
export function findForbidden(lockfile: string): string[] {
  return readPackages(lockfile)
    .filter(({ name, license }) => !isAllowed(name, license))
    .map(({ name, license }) => `${name}: ${license ?? "none"}`);
}

function isAllowed(name: string, expression = ""): boolean {
  const holds = (licence: string) =>
    ALLOWED.has(licence) || EXCEPTIONS.some((it) => it.licence === licence && it.packages.test(name));
  // Cannot read a licence that combines AND with OR. No package has one today.
  const words = expression.replaceAll(/[()]/g, "");
  return words.includes(" OR ") ? words.split(" OR ").some(holds) : words.split(" AND ").every(holds);
}

/** docs/licences.md: how many shipped packages have each licence, and which ones if it is not generally allowed. */
export function printLicences(lockfile: string): string {
  const shipped = readPackages(lockfile).filter(({ dev }) => dev !== true);
  const groups = Map.groupBy(shipped, ({ license }) => license ?? "none");
  const rows = [...groups].map(([licence, packages]) => {
    const count = new Set(packages.map(({ name, version }) => `${name}@${version}`)).size;
    // sharp has one package for each kind of machine.
    const families = packages.map(({ name }) => name.replace(/(?<=^@img\/sharp-(libvips|win32)-).*/, "*"));
    const names = [...new Set(families)].toSorted(byName).join(", ");
    return `| ${licence} | ${ALLOWED.has(licence) ? count : names} |\n`;
  });
  const reasons = EXCEPTIONS.map(
    ({ licence, packages, why }) => `| ${licence} | \`${packages.source.replaceAll("|", "\\|")}\` | ${why} |\n`,
  );
  return `# Licences

\`\`\`sh
npm run sbom      # every package with its version and licence (CycloneDX)
\`\`\`

Palaver has the [MIT licence](../LICENSE). The packages that are installed with it, on any machine:

| licence | packages |
|---|---|
${rows.toSorted(byName).join("")}
For these packages and those for development, a test allows ${[...ALLOWED].join(", ")} and these exceptions:

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
