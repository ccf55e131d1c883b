import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";

const script = fileURLToPath(new URL("../../.ci/setup.mjs", import.meta.url));

let root = "";
/** The packages that npm installs for the sample. Running npm takes a second, and most tests only need the result. */
let installed = "";

beforeEach(makeSample);
afterEach(() => rmSync(root, { recursive: true, force: true }));

beforeAll(async () => {
  makeSample();
  await setUp();
  installed = join(mkdtempSync(join(tmpdir(), "palaver-installed-")), "node_modules");
  renameSync(join(root, "node_modules"), installed);
  rmSync(root, { recursive: true });
});
afterAll(() => rmSync(dirname(installed), { recursive: true, force: true }));

function makeSample(): void {
  root = realpathSync(mkdtempSync(join(tmpdir(), "palaver-setup-test-")));
  mkdirSync(join(root, ".ci"));
  mkdirSync(join(root, "one"));
  cpSync(script, join(root, ".ci", "setup.mjs"));
  writeFileSync(join(root, "one", "package.json"), JSON.stringify({ name: "one", version: "1.0.0" }));
  write("package.json", sample);
  write("package-lock.json", lockfile("1.0.0"));
}

/** Leaves the sample in the state in which `setUp` leaves it. */
function install(): void {
  cpSync(installed, join(root, "node_modules"), { recursive: true, verbatimSymlinks: true });
}

const sample = { name: "sample", version: "1.0.0", engines: { node: ">=24.11.0" }, dependencies: { one: "file:one" } };

/** A lockfile whose only package is a folder, so that npm needs no network. */
function lockfile(version: string) {
  return {
    name: "sample",
    version: "1.0.0",
    lockfileVersion: 3,
    requires: true,
    packages: {
      "": { name: "sample", version: "1.0.0", dependencies: { one: "file:one" } },
      "node_modules/one": { resolved: "one", link: true },
      one: { version },
    },
  };
}

function write(name: string, content: unknown): void {
  writeFileSync(join(root, name), JSON.stringify(content));
}

async function setUp(args: string[] = [], env: Record<string, string> = {}) {
  // Removes npm's variables from this run, because the sample is another project.
  const inherited = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(npm_(?!config_)|CI$)/.test(name)),
  );
  const child = spawn(process.execPath, [join(root, ".ci", "setup.mjs"), ...args], { env: { ...inherited, ...env } });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  const [code] = (await once(child, "close")) as [number];
  return { code, said };
}

describe("the setup script", () => {
  test("the setup script reports that it installs missing packages, and prints nothing the next time", async () => {
    const first = await setUp();
    expect(first.said).toMatch(
      /^setup: nothing is installed: installing 1 packages \(.* seconds .*\)\n(?:setup: [01] of 1 packages, \d+ s\n)*setup: installed in \d+ s\n$/,
    );
    expect(first.code).toBe(0);
    expect(existsSync(join(root, "node_modules", "one", "package.json"))).toBe(true);
    expect(await setUp()).toEqual({ code: 0, said: "" });
  });

  test("the setup script installs again after a change of the lockfile, which it never writes", async () => {
    install();
    writeFileSync(join(root, "one", "package.json"), JSON.stringify({ name: "one", version: "2.0.0" }));
    write("package-lock.json", lockfile("2.0.0"));
    const before = readFileSync(join(root, "package-lock.json"), "utf8");
    const again = await setUp();
    expect(again).toMatchObject({ code: 0, said: expect.stringContaining("package-lock.json has changed") });
    expect(readFileSync(join(root, "package-lock.json"), "utf8")).toBe(before);
    expect((await setUp()).said).toBe("");
  });

  test("one of two setup scripts installs, and the other one waits for it", async () => {
    const both = await Promise.all([setUp(), setUp()]);
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(both.filter(({ said }) => said.includes("installing"))).toHaveLength(1);
  });

  test("the setup script takes the lock of a process that no longer runs", async () => {
    const gone = spawnSync(process.execPath, ["-e", ""]).pid;
    const name = createHash("sha256").update(`${root}/ ${userInfo().uid}`).digest("hex").slice(0, 16);
    const lock = join(tmpdir(), `palaver-setup-${name}.lock`);
    writeFileSync(lock, String(gone));
    expect(await setUp()).toMatchObject({ code: 0, said: expect.stringContaining("installing") });
    expect(existsSync(lock)).toBe(false);
  });

  test("a start installs no development packages, and keeps those that it finds", async () => {
    const withDev = lockfile("1.0.0");
    const two = packFolder("two", "1.0.0");
    write("package.json", { ...sample, devDependencies: { two: "1.0.0" } });
    write("package-lock.json", {
      ...withDev,
      packages: {
        ...withDev.packages,
        "": { ...sample, devDependencies: { two: "1.0.0" } },
        "node_modules/two": { version: "1.0.0", integrity: two.integrity, dev: true },
      },
    });
    const { env } = await startRegistry({ "/two/-/two-1.0.0.tgz": two.tarball });
    const isThere = () => existsSync(join(root, "node_modules", "two", "package.json"));
    await setUp(["start"], env);
    expect(isThere()).toBe(false);
    expect((await setUp(["develop"], env)).said).toContain("the packages for development are missing");
    expect(isThere()).toBe(true);
    write("one/package.json", { name: "one", version: "2.0.0" });
    const changed = JSON.stringify(JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")));
    writeFileSync(join(root, "package-lock.json"), changed.replace('"one":{"version":"1', '"one":{"version":"2'));
    expect((await setUp(["start"], env)).said).toContain("package-lock.json has changed");
    expect(isThere()).toBe(true);
  });

  describe("setup with a registry", () => {
    const files = { "index.js": "", "index.d.ts": "", "index.js.map": "", "LICENSE.md": "", "README.md": "" };

    function lockTwo() {
      const two = packFolder("two", "1.0.0", files);
      const dependencies = { two: "1.0.0" };
      write("package.json", { ...sample, dependencies });
      const packages = {
        "": { ...sample, dependencies },
        "node_modules/two": { version: "1.0.0", integrity: two.integrity },
      };
      write("package-lock.json", { name: "sample", version: "1.0.0", lockfileVersion: 3, requires: true, packages });
      return two;
    }

    test("the setup script works with a registry that serves its packages from other addresses", async () => {
      const { tarball, integrity } = lockTwo();
      const { env, asked } = await startRegistry({
        "/elsewhere": tarball,
        "/two": (url) => JSON.stringify(describePackage({ tarball: `${url}/elsewhere`, integrity })),
      });
      expect(await setUp(["start"], env)).toMatchObject({ code: 0 });
      expect(asked).toEqual(["/two/-/two-1.0.0.tgz", "/two", "/elsewhere"]);
    });

    test("a start asks the registry for each package once, keeps its programs and licences, and removes types, maps and manuals", async () => {
      const { tarball } = lockTwo();
      const { env, asked } = await startRegistry({ "/two/-/two-1.0.0.tgz": tarball });
      const installed = () => readdirSync(join(root, "node_modules", "two")).toSorted();
      expect(await setUp(["start"], env)).toMatchObject({ code: 0 });
      // The lockfile names no address.
      expect(asked).toEqual(["/two/-/two-1.0.0.tgz"]);
      expect(readdirSync(root)).not.toContain("npm-shrinkwrap.json");
      expect(installed()).toEqual(["LICENSE.md", "index.js", "package.json"]);
      await setUp(["develop"], env);
      expect(installed()).toEqual([
        "LICENSE.md",
        "README.md",
        "index.d.ts",
        "index.js",
        "index.js.map",
        "package.json",
      ]);
    });
  });

  describe("the Node that a command finds", () => {
    function makeNode(folder: string, script: string): string {
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "node"), script, { mode: 0o755 });
      chmodSync(join(folder, "node"), 0o755);
      return folder;
    }
    const saying = (version: string) => `#!/bin/sh\necho v${version}\n`;
    const forAnotherMachine = "#!/lib/no-such-loader\n";
    const packaged = () => join(root, "node_modules", ".bin");

    test("the setup script accepts the machine's own Node if it is new enough and the packaged one does not run", async () => {
      install();
      makeNode(packaged(), forAnotherMachine);
      const PATH = makeNode(join(root, "bin"), saying("24.11.0"));
      expect(await setUp(["start"], { PATH })).toEqual({ code: 0, said: "" });
      // Otherwise it would hide the machine's Node from the command.
      expect(existsSync(join(packaged(), "node"))).toBe(false);
    });

    test("the setup script finds the packaged Node outside of npm, even if that Node is not on the PATH", async () => {
      install();
      makeNode(packaged(), saying("26.10.0"));
      const PATH = makeNode(join(root, "bin"), saying("20.20.2"));
      expect(await setUp(["ci"], { PATH })).toMatchObject({ code: 0 });
    });

    test.each([
      [
        "is too old",
        "20.20.2",
        /needs Node 24\.11\.0 or later, but the one on the PATH is 20\.20\.2, and .*nodejs\.org/,
      ],
      ["is a little too old", "24.9.0", /needs Node 24\.11\.0 or later, but the one on the PATH is 24\.9\.0/],
    ])("the setup script names a Node that %s in one sentence", async (_, version, sentence) => {
      install();
      const result = await setUp(["start"], { PATH: makeNode(join(root, "bin"), saying(version)) });
      expect(result).toMatchObject({ code: 1, said: expect.stringMatching(sentence) });
      expect(result.said.trim().split("\n")).toHaveLength(1);
      expect(result.said).toContain("npm left out optional packages");
    });

    test("the setup script says in one sentence that the packaged Node does not run and that the machine has no other Node", async () => {
      install();
      makeNode(packaged(), forAnotherMachine);
      expect(await setUp(["start"], { PATH: join(root, "bin") })).toMatchObject({
        code: 1,
        said: expect.stringMatching(
          /there is none on the PATH, and the one from the packages does not run here \(.*Alpine/,
        ),
      });
    });
  });

  test("the setup script fails with a sentence if npm fails, or if the lockfile is missing", async () => {
    write("package-lock.json", {});
    expect(await setUp()).toMatchObject({
      code: 1,
      said: expect.stringMatching(/package-lock\.json is missing or unreadable/),
    });
    write("package-lock.json", { ...lockfile("1.0.0"), packages: { "": { dependencies: {} } } });
    expect(await setUp()).toMatchObject({ code: 1, said: expect.stringMatching(/setup: npm ci failed/) });
  });

  test("the setup script names missing programs and installs them only with CI=true", async () => {
    install();
    const bin = join(root, "bin");
    mkdirSync(bin);
    for (const name of ["redis-server", "promtool", "node"]) symlinkSync(process.execPath, join(bin, name));
    // A program that fails, and creates a file to show that it ran.
    writeFileSync(join(bin, "apt-get"), `#!/bin/sh\n: > ${join(root, "apt-get-ran")}\nexit 1\n`, { mode: 0o755 });
    const isAsked = () => existsSync(join(root, "apt-get-ran"));
    expect(await setUp(["test"], { PATH: bin })).toEqual({
      code: 0,
      said: "setup: chromium is not installed, so the tests in a browser are skipped. On Debian: apt-get install --no-install-recommends chromium-headless-shell fonts-noto-cjk\n",
    });
    expect(isAsked()).toBe(false);
    const canInstall = existsSync("/etc/debian_version") && process.getuid?.() === 0;
    expect((await setUp(["ci"], { PATH: bin })).code).toBe(0);
    expect(isAsked()).toBe(canInstall);
    const inCi = await setUp(["test"], { PATH: bin, CI: "true" });
    expect(inCi.code).toBe(1);
    expect(inCi.said).toContain("setup: chromium is not installed, and with CI=true no test may be skipped.\n");
    symlinkSync(process.execPath, join(bin, "chromium"));
    expect(await setUp(["test"], { PATH: bin, CI: "true" })).toEqual({ code: 0, said: "" });
  });
});

/** A package as a registry sends it. */
function packFolder(name: string, version: string, files: Record<string, string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), "palaver-package-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "package"));
  for (const [path, content] of Object.entries({ ...files, "package.json": JSON.stringify({ name, version }) })) {
    writeFileSync(join(folder, "package", path), content);
  }
  const tarball = spawnSync("tar", ["-cz", "package"], { cwd: folder }).stdout;
  return { tarball, integrity: `sha512-${createHash("sha512").update(tarball).digest("base64")}` };
}

function describePackage(dist: { tarball: string; integrity: string }) {
  return {
    name: "two",
    "dist-tags": { latest: "1.0.0" },
    versions: { "1.0.0": { name: "two", version: "1.0.0", dist } },
  };
}

/**
 * A registry that sends these responses. `asked` lists the paths of its requests. `env` makes npm use it, with an empty
 * cache.
 */
async function startRegistry(answers: Record<string, Buffer | ((url: string) => string)>) {
  const asked: string[] = [];
  const server = createServer(({ url: path = "" }, response) => {
    asked.push(path);
    const answer = answers[path];
    response.statusCode = answer === undefined ? 404 : 200;
    response.end(typeof answer === "function" ? answer(url) : answer);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { asked, env: { npm_config_registry: `${url}/`, npm_config_cache: join(root, "cache") } };
}
