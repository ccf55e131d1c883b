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

  test("checkData is content with a folder that it may write to, and leaves nothing in it", () => {
    expect(checkData(folder).map(({ ok }) => ok)).toEqual([true, true]);
    expect(readdirSync(folder)).toEqual([]);
  });

  test("checkData tries a folder that is not there yet, and leaves nothing of it", () => {
    const [found] = checkData(join(folder, "deep", "inside"));
    expect(found).toEqual({ ok: true, what: expect.stringMatching(/will be made/) });
    expect(readdirSync(folder)).toEqual([]);
  });

  test("checkData does not disturb a service that uses the folder", () => {
    const inUse = join(folder, "in-use");
    const database = openDatabase(join(inUse, "palaver.sqlite"));
    expect(checkData(inUse).every(({ ok }) => ok)).toBe(true);
    database.exec("CREATE TABLE still_usable (id INTEGER)");
    database.close();
  });

  test("checkData says what to do where no folder can be made, and does so at once below /proc", () => {
    writeFileSync(join(folder, "file"), "");
    for (const path of ["/proc/palaver", "/proc/palaver/deep", join(folder, "file"), join(folder, "file", "inside")]) {
      const [found, ...others] = checkData(path);
      expect(found).toEqual({ ok: false, what: expect.stringMatching(/cannot be created.*Set DATA_DIR to a folder/) });
      expect(others).toEqual([]);
    }
  });

  test.skipIf(process.getuid?.() === 0)("says what to do where it may not write", () => {
    const locked = join(folder, "locked");
    mkdirSync(locked);
    chmodSync(locked, 0o500);
    expect(checkData(locked)).toMatchObject([{ ok: false, what: expect.stringContaining("permissions") }]);
  });
});
