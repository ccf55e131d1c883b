import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createClient } from "@keyv/redis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { isRedisMissing, type RedisServer, startRedis } from "../../lab/support/redis.ts";
import { readKeys } from "../../src/app/keys.ts";
import { checkData } from "../../src/doctor/data.ts";
import { checkRedis } from "../../src/doctor/redis.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { DatabaseError, openDatabase, openForReading } from "../../src/store/database.ts";
import { createStores } from "../../src/store/keyv.ts";
import { StoreError } from "../../src/store/outage.ts";
import { STORED_VERSION } from "../../src/store/version.ts";

const OLDER =
  "holds data from a Palaver before 0.3, which this version cannot read: run version 0.2 to keep using it, or";
const NEWER = `holds data from a newer Palaver (layout 99, this one reads ${STORED_VERSION}): update Palaver, or`;
/** A part of a table that every version had. */
const TABLE = "CREATE TABLE keyv (key TEXT PRIMARY KEY, value TEXT NOT NULL)";

describe("a SQLite file", () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "palaver-version-"));
    path = join(folder, "palaver.sqlite");
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  function write(sql: string): void {
    const database = new DatabaseSync(path);
    database.exec(sql);
    database.close();
  }

  test.each([
    ["of version 0.2, whose stamp is 1", `PRAGMA journal_mode = WAL; PRAGMA user_version = 1; ${TABLE}`, OLDER],
    ["with tables and no stamp", TABLE, OLDER],
    ["of a newer version", `PRAGMA user_version = 99; ${TABLE}`, NEWER],
  ])("the start, a backup and the doctor refuse a SQLite file %s, and leave it unchanged", (_, sql, words) => {
    write(sql);
    const before = readFileSync(path);
    const sentence = `The database ${path} ${words} move the file away to start with an empty one.`;
    for (const open of [openDatabase, openForReading]) {
      expect(() => open(path)).toThrow(DatabaseError);
      expect(() => open(path)).toThrow(sentence);
    }
    expect(checkData(folder)).toEqual([{ ok: false, what: sentence }]);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test("a new SQLite file gets the stamp of this version, and opens again", () => {
    // The state after a crash between creating the file and stamping it.
    write("");
    openDatabase(path).close();
    using database = openForReading(path);
    expect(database.prepare("PRAGMA user_version").get()).toEqual({ user_version: STORED_VERSION });
    openDatabase(path).close();
    expect(checkData(folder)[0]).toMatchObject({ ok: true });
  });
});

describe.skipIf(isRedisMissing)("a Redis database (needs redis-server)", () => {
  let redis: RedisServer;
  let client: ReturnType<typeof createClient>;
  beforeAll(async () => {
    redis = await startRedis({ password: "canary-word" });
    client = createClient({ url: `${redis.url}/3` });
    await client.connect();
  });
  afterEach(() => client.flushAll());
  afterAll(async () => {
    await client?.close();
    await redis?.stop();
  });

  function start() {
    const stores = createStores(
      { redisUrl: `${redis.url}/3`, database: new DatabaseSync(":memory:"), log: silent },
      NO_RIGHT,
    );
    onTestFinished(stores.close);
    return stores;
  }

  test.each([
    ["of version 0.2, which has no stamp", { "identity:pseudonym-key": '{"value":"a key"}' }, OLDER],
    ["of a newer version", { "identity:pseudonym-key": '{"v":99,"value":"a key"}', layout: "99" }, NEWER],
  ])("every operation and the doctor refuse a Redis database %s, and leave it unchanged", async (_, entries, words) => {
    for (const [key, value] of Object.entries(entries)) await client.set(`palaver:${key}`, value);
    const where = redis.url.replace(":canary-word@", "");
    const sentence = `The Redis database ${where}/3 (REDIS_URL) ${words} end REDIS_URL with the number of an empty database, such as /1.`;
    const stores = start();
    const error: unknown = await readKeys(stores).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ message: sentence });
    await expect(stores.open("turns").set("t1", 1)).rejects.toThrow(sentence);
    const found = await checkRedis(`${redis.url}/3`);
    expect(found.filter(({ ok }) => !ok)).toEqual([{ ok: false, what: sentence }]);
    expect((await client.keys("*")).toSorted()).toEqual(Object.keys(entries).map((key) => `palaver:${key}`));
  });

  test("a new Redis database gets the stamp of this version before its first entry, also next to other programs' keys", async () => {
    await client.set("other:identity:pseudonym-key", "theirs");
    const all = [start(), start(), start()];
    await Promise.all(all.map(readKeys));
    expect(await client.get("palaver:layout")).toBe(String(STORED_VERSION));
    await readKeys(start());
  });

  test("a Redis database that was emptied while Palaver ran does not count as an older one at the next start", async () => {
    const running = start();
    await readKeys(running);
    await client.flushAll();
    await running.open("turns").set("t1", 1);
    await readKeys(start());
    expect(await client.get("palaver:layout")).toBe(String(STORED_VERSION));
  });
});
