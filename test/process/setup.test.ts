import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const script = fileURLToPath(new URL("../../.ci/setup.mjs", import.meta.url));

let root = "";

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "palaver-setup-test-")));
  mkdirSync(join(root, ".ci"));
  mkdirSync(join(root, "one"));
  cpSync(script, join(root, ".ci", "setup.mjs"));
  writeFileSync(join(root, "one", "package.json"), JSON.stringify({ name: "one", version: "1.0.0" }));
  write("package.json", { name: "sample", version: "1.0.0", dependencies: { one: "file:one" } });
  write("package-lock.json", lockfile("1.0.0"));
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

/** A lockfile whose one package is a folder, so that npm needs no network. */
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
  // Without what npm says about this run: the sample is another project.
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

describe("setup", () => {
  test("installs what is missing, says so in one line, and is quiet when nothing is to do", async () => {
    const first = await setUp();
    expect(first.said).toMatch(/^setup: nothing is installed, installing .*node_modules\n/);
    expect(first.code).toBe(0);
    expect(existsSync(join(root, "node_modules", "one", "package.json"))).toBe(true);
    expect(await setUp()).toEqual({ code: 0, said: "" });
  });

  test("installs again when the lockfile asks for something else, and never writes it", async () => {
    await setUp();
    writeFileSync(join(root, "one", "package.json"), JSON.stringify({ name: "one", version: "2.0.0" }));
    write("package-lock.json", lockfile("2.0.0"));
    const before = readFileSync(join(root, "package-lock.json"), "utf8");
    const again = await setUp();
    expect(again).toMatchObject({ code: 0, said: expect.stringContaining("package-lock.json has changed") });
    expect(readFileSync(join(root, "package-lock.json"), "utf8")).toBe(before);
    expect((await setUp()).said).toBe("");
  });

  test("lets one of two at once do the work and the other wait for it", async () => {
    const both = await Promise.all([setUp(), setUp()]);
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(both.filter(({ said }) => said.includes("installing"))).toHaveLength(1);
  });

  test("takes over the lock of a process that is gone", async () => {
    const gone = spawnSync(process.execPath, ["-e", ""]).pid;
    const name = createHash("sha256").update(`${root}/ ${userInfo().uid}`).digest("hex").slice(0, 16);
    const lock = join(tmpdir(), `palaver-setup-${name}.lock`);
    writeFileSync(lock, String(gone));
    expect(await setUp()).toMatchObject({ code: 0, said: expect.stringContaining("installing") });
    expect(existsSync(lock)).toBe(false);
  });

  test("does not ask for development packages to start", async () => {
    await setUp();
    const withDev = lockfile("1.0.0");
    write("package-lock.json", {
      ...withDev,
      packages: { ...withDev.packages, "node_modules/two": { version: "1.0.0", dev: true } },
    });
    expect(await setUp(["start"])).toEqual({ code: 0, said: "" });
    expect((await setUp()).said).toContain("package-lock.json has changed");
  });

  test("fails with a sentence when npm does, and when there is no lockfile", async () => {
    write("package-lock.json", {});
    expect(await setUp()).toMatchObject({
      code: 1,
      said: expect.stringMatching(/package-lock\.json is missing or unreadable/),
    });
    write("package-lock.json", { ...lockfile("1.0.0"), packages: { "": { dependencies: {} } } });
    expect(await setUp()).toMatchObject({ code: 1, said: expect.stringMatching(/setup: npm ci failed/) });
  });

  test("names the tests that will be skipped, and with CI=true refuses to skip any", async () => {
    await setUp();
    const bin = join(root, "bin");
    mkdirSync(bin);
    for (const name of ["redis-server", "promtool"]) symlinkSync(process.execPath, join(bin, name));
    const lacking = await setUp(["test"], { PATH: bin });
    expect(lacking).toEqual({
      code: 0,
      said: "setup: chromium is not installed; the tests in a browser will be skipped\n",
    });
    expect(await setUp(["test"], { PATH: bin, CI: "true" })).toEqual({
      code: 1,
      said: "setup: chromium is not installed, and with CI=true no test may be skipped.\n",
    });
    symlinkSync(process.execPath, join(bin, "chromium"));
    expect(await setUp(["test"], { PATH: bin, CI: "true" })).toEqual({ code: 0, said: "" });
  });
});
