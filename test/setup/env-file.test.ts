import { chmodSync, lstatSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { makeDataDir } from "../../lab/support/service.ts";
import { canWriteEnvFile, mergeEnv, readEnvFile, writeEnvFile } from "../../src/setup/env-file.ts";

async function makeFolder(): Promise<string> {
  const { path, remove } = await makeDataDir();
  onTestFinished(remove);
  return path;
}

describe("merging variables into a .env file", () => {
  test("mergeEnv replaces the line of a variable, appends others, and leaves every other line as it is", () => {
    const before = '# mine\r\nCHAT_MODEL=\r\nexport BOT_NAME="A # b"\n# CHAT_MODEL=no\nOTHER=1';
    expect(mergeEnv(before, { CHAT_MODEL: "m", BOT_NAME: "C", NEW: "a#b" })).toBe(
      "# mine\r\nCHAT_MODEL=m\r\nexport BOT_NAME=C\n# CHAT_MODEL=no\nOTHER=1\nNEW='a#b'\n",
    );
  });

  test("mergeEnv refuses a file in which it would change something else", () => {
    const several = 'SYSTEM_PROMPT="one\nCHAT_MODEL=two\nthree"\n';
    expect(() => mergeEnv(several, { CHAT_MODEL: "m" })).toThrow(/without changing/);
    expect(() => mergeEnv('CHAT_MODEL="one\ntwo"\n', { CHAT_MODEL: "m" })).toThrow(/without changing/);
  });

  test("Node reads every key back as given", () => {
    const key = fc
      .string({ unit: fc.constantFrom("a", "Z", "0", "'", '"', "#", "=", "$", "\\", "-", "/", "+", " ") })
      .map((text) => text.trim());
    fc.assert(
      fc.property(key, (value) => {
        fc.pre(value !== "" && !["'", '"'].every((mark) => value.includes(mark)));
        expect(parseEnv(mergeEnv("A=1\n", { B: value }))).toEqual({ A: "1", B: value });
      }),
    );
  });
});

describe("writing a .env file", () => {
  test("writeEnvFile makes a file that only its owner can read, even if others could read it before", async () => {
    const folder = await makeFolder();
    const path = join(folder, ".env");
    writeFileSync(path, "A=1\n");
    chmodSync(path, 0o644);
    writeEnvFile(path, "A=2\n");
    expect(readEnvFile(path)).toBe("A=2\n");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual([".env"]);
  });

  test("writeEnvFile writes the target of a link", async () => {
    const folder = await makeFolder();
    writeFileSync(join(folder, "real"), "");
    symlinkSync(join(folder, "real"), join(folder, ".env"));
    writeEnvFile(join(folder, ".env"), "A=1\n");
    expect(lstatSync(join(folder, ".env")).isSymbolicLink()).toBe(true);
    expect(readFileSync(join(folder, "real"), "utf8")).toBe("A=1\n");
  });

  test("canWriteEnvFile is false if the folder is missing or the name belongs to something else", async () => {
    const folder = await makeFolder();
    expect(canWriteEnvFile(join(folder, ".env"))).toBe(true);
    expect(canWriteEnvFile(join(folder, "absent", ".env"))).toBe(false);
    expect(canWriteEnvFile(folder)).toBe(false);
  });
});
