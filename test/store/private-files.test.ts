import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createFolder } from "../../src/store/private-files.ts";

describe("createFolder", () => {
  let root: string;
  beforeAll(() => void (root = mkdtempSync(join(tmpdir(), "palaver-folder-"))));
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  test("makes a folder and those it stands in, for nobody else to read", () => {
    createFolder(join(root, "a", "b"));
    expect(statSync(join(root, "a")).mode & 0o777).toBe(0o700);
    expect(statSync(join(root, "a", "b")).mode & 0o777).toBe(0o700);
  });

  test("leaves one that is there as it is, also behind a link", () => {
    createFolder(root);
    symlinkSync(root, join(root, "link"));
    createFolder(join(root, "link"));
    createFolder(".");
  });

  test("throws where a file is in the way, or a link to nothing", () => {
    writeFileSync(join(root, "file"), "");
    symlinkSync(join(root, "nothing"), join(root, "broken"));
    expect(() => createFolder(join(root, "file"))).toThrow(/EEXIST/);
    expect(() => createFolder(join(root, "file", "inside"))).toThrow(/EEXIST|ENOTDIR/);
    expect(() => createFolder(join(root, "broken"))).toThrow(/EEXIST/);
  });

  // Node's own recursive form never returns from this one.
  test.runIf(process.platform === "linux")("throws where the system denies the existing parent", () => {
    expect(() => createFolder("/proc/palaver")).toThrow(/ENOENT/);
    expect(() => createFolder("/proc/palaver/inside")).toThrow(/ENOENT/);
  });
});
