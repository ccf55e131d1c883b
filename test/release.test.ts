import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv } from "ajv";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { findForbidden, printLicences } from "../.ci/licences.ts";

const require = createRequire(import.meta.url);
const root = fileURLToPath(new URL("..", import.meta.url));

interface Lockfile {
  packages: Record<string, { name?: string; version?: string; dev?: boolean }>;
}

/** The name of the package at `node_modules/a/node_modules/b`. */
function toName(path: string): string {
  return path.replace(/^.*node_modules\//, "");
}

/** A repository with the files that a release changes, in a temporary folder. */
function makeRepository(changelog: string) {
  const home = mkdtempSync(join(tmpdir(), "palaver-release-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const folder = join(home, "palaver");
  for (const name of ["package.json", "package-lock.json", ".npmrc", ".ci"]) {
    cpSync(root + name, join(folder, name), { recursive: true });
  }
  writeFileSync(join(folder, "CHANGELOG.md"), changelog);
  const run = (command: string, ...args: string[]) =>
    spawnSync(command, args, {
      cwd: folder,
      encoding: "utf8",
      env: { PATH: process.env["PATH"], HOME: home, GIT_CONFIG_NOSYSTEM: "1" },
    });
  run("git", "init", "-q");
  run("git", "config", "user.name", "Ada");
  run("git", "config", "user.email", "ada@example.com");
  run("git", "add", "-A");
  run("git", "commit", "-qm", "chore: begin");
  return { run, read: (name: string) => readFileSync(join(folder, name), "utf8") };
}

test("npm run release turns the unreleased notes into a section, and makes one commit and one tag with the version", () => {
  const { run, read } = makeRepository(
    "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.1.0] - 2026-11-20\n\nFirst.\n",
  );
  expect(run("npm", "run", "release", "--", "9.8.7")).toMatchObject({ status: 0 });
  const day = new Date().toISOString().slice(0, 10);
  expect(read("CHANGELOG.md")).toBe(
    `# Changelog\n\n## [Unreleased]\n\n## [9.8.7] - ${day}\n\n### Added\n\n- A thing.\n\n## [0.1.0] - 2026-11-20\n\nFirst.\n`,
  );
  expect(JSON.parse(read("package.json"))).toMatchObject({ version: "9.8.7" });
  expect(JSON.parse(read("package-lock.json"))).toMatchObject({ version: "9.8.7" });
  expect(run("git", "log", "--format=%s %D", "-1").stdout).toMatch(/^chore: release 9\.8\.7 .*tag: v9\.8\.7/);
  expect(run("git", "status", "--short").stdout).toBe("");
});

test("npm run release changes nothing when there are no unreleased notes", () => {
  const { run, read } = makeRepository("# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-11-20\n\nFirst.\n");
  const before = read("package.json");
  const { status, stderr } = run("npm", "run", "release", "--", "9.8.7");
  expect(status).not.toBe(0);
  expect(stderr).toContain("there is nothing to release");
  expect(read("package.json")).toBe(before);
  expect(run("git", "status", "--short").stdout).toBe("");
});

test("npm run sbom lists every shipped package, in the published format of CycloneDX 1.5", () => {
  const { stdout } = spawnSync("npm", ["run", "-s", "sbom"], { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26 });
  const bom = JSON.parse(stdout) as { components: { purl: string }[] };
  const library = require.resolve("@cyclonedx/cyclonedx-library/package.json");
  const schemas = join(library, "../res/schema");
  const read = (name: string) =>
    JSON.parse(readFileSync(join(schemas, `${name}.SNAPSHOT.schema.json`), "utf8")) as object;
  const ajv = new Ajv({ strict: false, validateFormats: false });
  ajv.addSchema(read("spdx"), "http://cyclonedx.org/schema/spdx.SNAPSHOT.schema.json");
  ajv.addSchema(read("jsf-0.82"), "http://cyclonedx.org/schema/jsf-0.82.SNAPSHOT.schema.json");
  const fits = ajv.compile(read("bom-1.5"));
  expect(fits(bom) ? [] : fits.errors).toEqual([]);
  expect(fits({ ...bom, components: [{ type: "libary", name: "x" }] })).toBe(false);
  const { packages } = JSON.parse(readFileSync(`${root}package-lock.json`, "utf8")) as Lockfile;
  const listed = bom.components.map(({ purl }) => decodeURIComponent(purl));
  const shipped = Object.entries(packages).filter(([path, { dev }]) => path !== "" && dev !== true);
  const purls = shipped.map(([path, entry]) => `pkg:npm/${entry.name ?? toName(path)}@${entry.version}`);
  expect(listed.toSorted()).toEqual([...new Set(purls)].toSorted());
});

test("every dependency has an allowed licence, and docs/licences.md counts the shipped ones", () => {
  const lockfile = readFileSync(`${root}package-lock.json`, "utf8");
  expect(findForbidden(lockfile)).toEqual([]);
  expect(readFileSync(`${root}docs/licences.md`, "utf8")).toBe(printLicences(lockfile));
});

test("the check finds a licence that is not allowed, and accepts one allowed licence among alternatives", () => {
  const packages = {
    "": { license: "MIT" },
    "node_modules/a": { license: "AGPL-3.0-only" },
    "node_modules/b": {},
    "node_modules/c": { license: "(MIT OR GPL-3.0-or-later)" },
    "node_modules/d": { license: "(MIT AND GPL-3.0-or-later)" },
  };
  expect(findForbidden(JSON.stringify({ packages }))).toEqual([
    "a: AGPL-3.0-only",
    "b: none",
    "d: (MIT AND GPL-3.0-or-later)",
  ]);
});

test.each([
  ["audited 700 packages\n700 packages have verified registry signatures", 0, 0, "verified"],
  ["npm error code ENOTFOUND\nnpm error network", 1, 0, "not checked"],
  ["1 package has an invalid registry signature:", 1, 1, "invalid registry signature"],
  ["2 packages have missing registry signatures but the registry is providing signing keys:", 1, 1, "missing"],
])("npm's report %j of signatures with exit code %d leads to exit code %d", (output, npmStatus, status, told) => {
  const folder = mkdtempSync(join(tmpdir(), "palaver-npm-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "npm"), `#!/bin/sh\necho ${JSON.stringify(output)}\nexit ${npmStatus}\n`, { mode: 0o755 });
  const PATH = `${folder}:${process.env["PATH"]}`;
  const run = spawnSync("bash", [`${root}.ci/signatures.sh`], { encoding: "utf8", env: { PATH } });
  expect(run.status).toBe(status);
  expect(run.stdout).toContain(told);
});

test("the workflow runs the same commands as CI elsewhere, and only existing commands", () => {
  const workflow = parse(readFileSync(`${root}.github/workflows/ci.yaml`, "utf8")) as {
    jobs: Record<string, { steps: { run?: string }[] }>;
  };
  const commands = Object.values(workflow.jobs).flatMap(({ steps }) => steps.flatMap(({ run }) => run ?? []));
  const { scripts } = JSON.parse(readFileSync(`${root}package.json`, "utf8")) as { scripts: object };
  const names = commands.flatMap((command) => /npm run (?:-s )?(\w+)/.exec(command)?.[1] ?? []);
  expect(commands).toContain(".ci/run");
  expect(names.filter((name) => !(name in scripts))).toEqual([]);
});

test("no command needs an npm hook, which npm skips if a user's configuration says ignore-scripts=true", () => {
  const { scripts } = JSON.parse(readFileSync(`${root}package.json`, "utf8")) as { scripts: object };
  const ofNpm = ["version", "install", "prepare", "pack", "publish"];
  const hooks = Object.keys(scripts).filter((name) => {
    const [, hooked = ""] = /^(?:pre|post)(.+)$/.exec(name) ?? [];
    return hooked in scripts || ofNpm.includes(hooked) || ofNpm.includes(name);
  });
  expect(hooks).toEqual([]);
  expect(readFileSync(`${root}.npmrc`, "utf8")).not.toContain("ignore-scripts");
});

test("the image's build context contains every file that the image needs", () => {
  const copied = /^cp (?:-R )?(.+) "\$image\/app(?:\/\.ci)?"$/gm;
  const needed = [...readFileSync(`${root}.ci/image.sh`, "utf8").matchAll(copied)].flatMap(([, names = ""]) =>
    names.split(" "),
  );
  const admitted = readFileSync(`${root}.dockerignore`, "utf8").split("\n");
  expect(needed.length).toBeGreaterThan(4);
  expect([...needed, ".ci/image.sh"].filter((name) => !admitted.includes(`!${name}`))).toEqual([]);
});
