import type { DatabaseSync } from "node:sqlite";
import { Keyv } from "keyv";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openDatabase } from "../../src/store/database.ts";
import { createSqliteStore, type OwnedStore } from "../../src/store/sqlite.ts";
import { describeKeyvStore } from "../support/keyv-store.ts";

let database: DatabaseSync;
let store: OwnedStore;
let opened: OwnedStore[];
beforeEach(() => {
  database = openDatabase(":memory:");
  opened = [];
  store = openStore();
});
afterEach(async () => {
  for (const store of opened) await store.disconnect();
  database.close();
});

function openStore(): OwnedStore {
  const store = createSqliteStore(database, { table: "kv" });
  opened.push(store);
  return store;
}

describe("Keyv's rules for a store", () => {
  describeKeyvStore((namespace) => new Keyv({ store: openStore(), namespace }));
});

/** How often other code could run on this thread. */
function countTurns(): { stop(): number } {
  let turns = 0;
  let isOver = false;
  const next = () => {
    turns += 1;
    if (!isOver) setImmediate(next);
  };
  setImmediate(next);
  return {
    stop() {
      isOver = true;
      return turns;
    },
  };
}

const rows = () => Number(database.prepare("SELECT count(*) AS n FROM kv").get()?.["n"]);

describe("createSqliteStore", () => {
  test("a store on SQLite writes many keys together or none of them", async () => {
    const entries = [
      { key: "a", value: "1" },
      // The database refuses this entry after it has written the first, because a time must be a whole number.
      { key: "b", value: "2", ttl: 0.5 },
    ];
    await expect(store.setMany(entries)).rejects.toThrow();
    expect(await store.get("a")).toBeUndefined();
    expect(database.isTransaction).toBe(false);
  });

  test("a store on SQLite keeps a separate time to live for each of many keys", async () => {
    await store.setMany([
      { key: "short", value: "1", ttl: 1 },
      { key: "long", value: "2", ttl: 60_000 },
      { key: "ever", value: "3" },
    ]);
    await vi.waitFor(async () => expect(await store.get("short")).toBeUndefined());
    expect(await store.getMany(["long", "short", "ever", "absent"])).toEqual(["2", undefined, "3", undefined]);
    expect(await store.hasMany(["long", "short", "ever", "absent"])).toEqual([true, false, true, false]);
  });

  test("a store on SQLite erases expired rows and keeps the others", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const swept = openStore();
    const expired = Array.from({ length: 2_500 }, (_, index) => ({ key: `k${index}`, value: "1", ttl: -1 }));
    await swept.setMany([...expired, { key: "kept", value: "2", ttl: 60_000 }, { key: "ever", value: "3" }]);
    // There is only one sweep, because anything that it leaves would stay for a minute.
    vi.advanceTimersByTime(60_000);
    vi.useRealTimers();
    for (let turn = 0; turn < 100 && rows() > 2; turn++) await new Promise(setImmediate);
    expect(rows()).toBe(2);
    expect(await store.getMany(["kept", "ever"])).toEqual(["2", "3"]);
  });

  test("a store on SQLite yields the thread while it is iterated, however little time each row takes", async () => {
    await store.setMany(Array.from({ length: 1_000 }, (_, index) => ({ key: `n:${index}`, value: "1" })));
    const others = countTurns();
    for await (const [key] of store.iterator("n")) await store.delete(key);
    expect(others.stop()).toBeGreaterThanOrEqual(5);
  });

  test("a store on SQLite iterates over one namespace only, in pages, while rows are deleted", async () => {
    const keys = Array.from({ length: 250 }, (_, index) => `n:${String(index).padStart(4, "0")}`);
    await store.setMany(["m", "n", "n:", "n;", "nn:x", ...keys].map((key) => ({ key, value: key })));
    const seen: string[] = [];
    for await (const [key] of store.iterator("n")) {
      seen.push(key);
      await store.delete(key);
    }
    expect(seen).toEqual(["n:", ...keys]);
    expect(rows()).toBe(4);
  });

  test("a store on SQLite accepts keys and values of any characters", async () => {
    const texts = ["", "%", "_", "'", '"', ":", "a:b", "日本語 🦊", "a\0b", "a\0c", "x".repeat(100_000)];
    await store.setMany(texts.map((text) => ({ key: text, value: text })));
    expect(await store.getMany(texts)).toEqual(texts);
    expect(rows()).toBe(texts.length);
  });

  test("a store on SQLite refuses an invalid table name", () => {
    expect(() => createSqliteStore(database, { table: "a; DROP TABLE kv" })).toThrow(/not a valid table name/);
  });
});
