import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkData } from "../../src/doctor/data.ts";
import { openDatabase } from "../../src/store/database.ts";

describe("checkData", () => {
  let folder: string;
  beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), "palaver-doctor-"))));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test("checkData accepts a writable folder, and leaves nothing in it", () => {
    expect(checkData(folder).map(({ ok }) => ok)).toEqual([true, true]);
    expect(readdirSync(folder)).toEqual([]);
  });

  test("checkData can test a folder that does not exist yet, and does not leave that folder behind", () => {
    const [found] = checkData(join(folder, "deep", "inside"));
    expect(found).toEqual({ ok: true, what: expect.stringMatching(/will be created/) });
    expect(readdirSync(folder)).toEqual([]);
  });

  test("checkData does not disturb a service that uses the folder", () => {
    const inUse = join(folder, "in-use");
    const database = openDatabase(join(inUse, "palaver.sqlite"));
    expect(checkData(inUse).map(({ ok }) => ok)).toEqual([true, true]);
    database.exec("CREATE TABLE still_usable (id INTEGER)");
    database.close();
  });

  test("checkData says what to do if the folder cannot be created, and at once below /proc", () => {
    writeFileSync(join(folder, "file"), "");
    for (const path of ["/proc/palaver", "/proc/palaver/deep", join(folder, "file"), join(folder, "file", "inside")]) {
      const [found, ...others] = checkData(path);
      expect(found).toEqual({
        ok: false,
        what: expect.stringMatching(/cannot be created.*Set DATA_DIR to a writable folder/),
      });
      expect(others).toEqual([]);
    }
  });

  test.skipIf(process.getuid?.() === 0)("checkData says what to do if it cannot write", () => {
    const locked = join(folder, "locked");
    mkdirSync(locked);
    chmodSync(locked, 0o500);
    expect(checkData(locked)).toMatchObject([{ ok: false, what: expect.stringContaining("permissions") }]);
  });
});
