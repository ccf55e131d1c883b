import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createFolder } from "../../src/store/private-files.ts";

describe("createFolder", () => {
  let root: string;
  beforeAll(() => void (root = mkdtempSync(join(tmpdir(), "palaver-folder-"))));
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  test("createFolder creates a folder and its parents, readable by no other user", () => {
    createFolder(join(root, "a", "b"));
    expect(statSync(join(root, "a")).mode & 0o777).toBe(0o700);
    expect(statSync(join(root, "a", "b")).mode & 0o777).toBe(0o700);
  });

  test("createFolder leaves an existing folder unchanged, also behind a link", () => {
    chmodSync(root, 0o750);
    symlinkSync(root, join(root, "link"));
    const before = readdirSync(root);
    for (const path of [root, join(root, "link"), "."]) createFolder(path);
    expect(statSync(root).mode & 0o777).toBe(0o750);
    expect(readdirSync(root)).toEqual(before);
  });

  test("createFolder throws if a file or a dangling link is in the way", () => {
    writeFileSync(join(root, "file"), "");
    symlinkSync(join(root, "nothing"), join(root, "broken"));
    expect(() => createFolder(join(root, "file"))).toThrow(/EEXIST/);
    expect(() => createFolder(join(root, "file", "inside"))).toThrow(/EEXIST|ENOTDIR/);
    expect(() => createFolder(join(root, "broken"))).toThrow(/EEXIST/);
  });

  // Node's own recursive form never returns here.
  test.runIf(process.platform === "linux")(
    "createFolder throws if the system denies that the existing parent exists",
    () => {
      expect(() => createFolder("/proc/palaver")).toThrow(/ENOENT/);
      expect(() => createFolder("/proc/palaver/inside")).toThrow(/ENOENT/);
    },
  );
});
