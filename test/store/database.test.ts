import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { DatabaseError, emptyLog, openDatabase, transact } from "../../src/store/database.ts";
import { findExposed } from "../../src/store/private-files.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "palaver-database-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const pragma = (database: DatabaseSync, name: string) =>
  Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0];

describe("openDatabase", () => {
  test("openDatabase creates the folder and the file, readable by no other user", () => {
    const database = openDatabase(join(folder, "deep", "er", "p.sqlite"));
    database.close();
    expect(statSync(join(folder, "deep", "er")).mode & 0o077).toBe(0);
    expect(statSync(join(folder, "deep", "er", "p.sqlite")).isFile()).toBe(true);
  });

  describe.runIf(process.platform !== "win32")("a database that no other user can read", () => {
    const FILES = ["p.sqlite", "p.sqlite-shm", "p.sqlite-wal", "p.sqlite.lock"];
    const modes = () => FILES.map((name) => (statSync(join(folder, name)).mode & 0o777).toString(8));
    const write = (database: DatabaseSync) => database.exec("CREATE TABLE IF NOT EXISTS t (x TEXT)");

    test.each(["0", "22", "77", "777"])(
      "openDatabase protects the files it creates under the umask %s in an existing folder",
      (umask) => {
        chmodSync(folder, 0o755);
        const before = process.umask(Number.parseInt(umask, 8));
        try {
          using database = openDatabase(join(folder, "p.sqlite"));
          write(database);
          expect(modes()).toEqual(FILES.map(() => "600"));
          expect(findExposed(join(folder, "p.sqlite"))).toEqual([]);
        } finally {
          process.umask(before);
        }
      },
    );

    test("openDatabase protects files that an earlier version left readable, including a log that a crash left behind", () => {
      const path = join(folder, "p.sqlite");
      const crashed = openDatabase(path);
      write(crashed);
      for (const name of FILES) cpSync(join(folder, name), join(folder, `copy-${name}`));
      crashed.close();
      for (const name of FILES) {
        renameSync(join(folder, `copy-${name}`), join(folder, name));
        chmodSync(join(folder, name), 0o644);
      }
      expect(findExposed(path)).toHaveLength(FILES.length);
      using database = openDatabase(path);
      write(database);
      expect(modes()).toEqual(FILES.map(() => "600"));
    });
  });

  test("a database keeps committed data through a crash of the machine, and overwrites deleted data", () => {
    using database = openDatabase(join(folder, "p.sqlite"));
    const settings = ["journal_mode", "synchronous", "secure_delete", "foreign_keys"].map((name) =>
      pragma(database, name),
    );
    expect(settings).toEqual(["wal", 2, 1, 1]);
    expect(pragma(database, "busy_timeout")).toBeGreaterThan(0);
  });

  test("a database leaves nothing of a deleted row in the file", () => {
    const path = join(folder, "p.sqlite");
    const database = openDatabase(path);
    database.exec("CREATE TABLE t (x TEXT)");
    database.prepare("INSERT INTO t VALUES (?)").run("a secret sentence".repeat(50));
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    expect(readFileSync(path).includes("a secret sentence")).toBe(true);
    database.exec("DELETE FROM t");
    database.close();
    expect(readFileSync(path).includes("a secret sentence")).toBe(false);
  });

  test("openDatabase opens a database in memory without any file", () => {
    using database = openDatabase(":memory:");
    expect(database.prepare("SELECT 1 AS one").get()).toEqual({ one: 1 });
  });

  test("a database cannot be opened a second time while it is open, and can be opened again once it is closed", () => {
    const path = join(folder, "p.sqlite");
    const first = openDatabase(path);
    expect(() => openDatabase(path)).toThrow(/is in use by another process\. Stop that one first, or set DATA_DIR/);
    expect(first.prepare("SELECT 1 AS one").get()).toEqual({ one: 1 });
    first.close();
    openDatabase(path).close();
    {
      using disposed = openDatabase(path);
      expect(disposed.isOpen).toBe(true);
    }
    openDatabase(path).close();
  });

  test("a second process cannot open a database until the first one is killed", async () => {
    const path = join(folder, "p.sqlite");
    const child = await holdInChild(path);
    expect(() => openDatabase(path)).toThrow(DatabaseError);
    const exit = once(child, "exit");
    child.kill("SIGKILL");
    await exit;
    using database = openDatabase(path);
    expect(database.prepare("SELECT x FROM t").get()).toEqual({ x: "committed" });
  });

  test("openDatabase reports a damaged file in one sentence, and leaves it unchanged", () => {
    const path = join(folder, "p.sqlite");
    const bytes = "this is a letter, not a database ".repeat(100);
    writeFileSync(path, bytes);
    expect(() => openDatabase(path)).toThrow(`The file ${path} is damaged or is not a database. Replace it`);
    expect(readFileSync(path, "utf8")).toBe(bytes);
    // The failure releases the lock.
    rmSync(path);
    openDatabase(path).close();
  });

  test("openDatabase names a folder in which it cannot write", () => {
    writeFileSync(join(folder, "file"), "");
    expect(() => openDatabase(join(folder, "file", "p.sqlite"))).toThrow(
      /folder .*file.* cannot be created .*DATA_DIR/,
    );
    expect(() => openDatabase(folder)).toThrow(/cannot be opened for writing .*DATA_DIR/);
  });
});

describe("emptying the log of a database", () => {
  test("emptyLog leaves nothing in the log, and does not wait for readers", () => {
    const path = join(folder, "p.sqlite");
    using database = openDatabase(path);
    database.exec("CREATE TABLE t (x)");
    const reader = new DatabaseSync(path);
    reader.exec("BEGIN");
    reader.prepare("SELECT * FROM t").all();
    database.exec("INSERT INTO t VALUES (1)");
    emptyLog(database);
    expect(statSync(`${path}-wal`).size).toBeGreaterThan(0);
    reader.close();
    emptyLog(database);
    expect(statSync(`${path}-wal`).size).toBe(0);
    expect(pragma(database, "busy_timeout")).toBeGreaterThan(0);
  });
});

describe("a transaction on a database", () => {
  test("transact stores everything, or nothing if its function throws", () => {
    using database = openDatabase(":memory:");
    database.exec("CREATE TABLE t (x)");
    const insert = database.prepare("INSERT INTO t VALUES (?)");
    expect(transact(database, () => insert.run(1).changes)).toBe(1);
    const failing = () =>
      transact(database, () => {
        insert.run(2);
        throw new Error("stop");
      });
    expect(failing).toThrow("stop");
    expect(database.prepare("SELECT x FROM t").all()).toEqual([{ x: 1 }]);
    expect(database.isTransaction).toBe(false);
  });
});

async function holdInChild(path: string): Promise<ChildProcess> {
  const source = new URL("../../src/store/database.ts", import.meta.url).href;
  const script = `
    import { openDatabase } from ${JSON.stringify(source)};
    const database = openDatabase(process.argv[1]);
    database.exec("CREATE TABLE t (x); INSERT INTO t VALUES ('committed')");
    console.log("open");
    setInterval(() => database.isOpen, 1_000);
  `;
  const args = ["--input-type=module-typescript", "--eval", script, path];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return child;
}
