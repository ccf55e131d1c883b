import { once } from "node:events";
import { createServer } from "node:net";
import type { DatabaseSync } from "node:sqlite";
import { createClient } from "@keyv/redis";
import { Keyv } from "keyv";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { recordingLog, silent } from "../../lab/support/log.ts";
import { isRedisMissing, type RedisServer, startRedis } from "../../lab/support/redis.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { openDatabase } from "../../src/store/database.ts";
import { createNamespaceView, createStores, type Entries, type Stores } from "../../src/store/keyv.ts";
import { StoreError } from "../../src/store/outage.ts";
import { createRedisStore, type OpenStore } from "../../src/store/redis.ts";
import { describeKeyvStore } from "../support/keyv-store.ts";
import { countCommands } from "../support/shared-redis.ts";

const DAY_MS = 86_400_000;

let database: DatabaseSync;
beforeAll(() => {
  database = openDatabase(":memory:");
});
afterAll(() => database.close());

/** The behaviour that both stores share. `put` writes a text without Keyv. */
function storesContract(start: () => { stores: Stores; put: (key: string, text: string) => Promise<unknown> }) {
  let stores: Stores;
  let put: (key: string, text: string) => Promise<unknown>;
  beforeEach(() => {
    ({ stores, put } = start());
  });
  afterEach(() => stores.close());

  test("a store keeps namespaces apart, even if one is a prefix of another, and prefixes keys once", async () => {
    for (const name of ["apart", "apart2", "a*", "aXart"]) await stores.open(name).set("key", name);
    expect(await stores.open("apart").get("key")).toBe("apart");
    expect(await stores.open("apart2").getMany([])).toEqual([]);
    expect(await stores.open("apart2").getMany(["key", "absent"])).toEqual(["apart2", undefined]);
    expect(await walk(stores.open("a*"))).toEqual([["key", "a*"]]);
    await stores.open("apart").clear();
    expect(await stores.open("apart2").get("key")).toBe("apart2");
    expect(await stores.open("apart").has("key")).toBe(false);
  });

  test("a store nests namespaces: one write can cover keys of the inner and the outer namespace", async () => {
    await stores.open("outer").setMany([
      { key: "in:ner:1", value: 1 },
      { key: "in:ner:2", value: 2 },
      { key: "in:other", value: 3 },
    ]);
    expect(await walk(stores.open("outer:in:ner"))).toEqual([
      ["1", 1],
      ["2", 2],
    ]);
    expect(await stores.open("outer:in").get("other")).toBe(3);
  });

  test("Keyv hands many entries to the store in one call, each with its own time to live", async () => {
    const keyv = stores.open("many");
    await keyv.setMany([
      { key: "short", value: "a", ttl: 1 },
      { key: "long", value: "b", ttl: 60_000 },
      { key: "ever", value: "c" },
    ]);
    await vi.waitFor(async () => expect(await keyv.get("short")).toBeUndefined());
    expect(await keyv.getMany(["long", "ever"])).toEqual(["b", "c"]);
    expect(await keyv.deleteMany(["long", "ever"])).toBe(true);
    expect(await keyv.getMany(["long", "ever"])).toEqual([undefined, undefined]);
  });

  test("a store keeps every entry for its time while the system's clock jumps by years", async () => {
    const keyv = stores.open("clock");
    await keyv.set("before", 1, 60_000);
    const today = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: today });
    try {
      for (const years of [20, -20, 0]) {
        vi.setSystemTime(today + years * 365 * 86_400_000);
        const written = `written ${years}`;
        await keyv.set(written, 1, 60_000);
        expect(await keyv.getMany(["before", written])).toEqual([1, 1]);
        expect(await walk(keyv)).toContainEqual(["before", 1]);
      }
      expect(await keyv.getMany(["written 20", "written -20"])).toEqual([1, 1]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("a store reads a damaged value as null, alone, among others and in the middle of an iteration", async () => {
    const keyv = stores.open("damaged");
    await keyv.set("a", "whole");
    await put("damaged:b", "{half of it");
    await put("damaged:c", '"no object"');
    await keyv.set("d", "whole");
    expect(await keyv.get("b")).toBeNull();
    expect(await keyv.getMany(["a", "b", "c", "d"])).toEqual(["whole", null, null, "whole"]);
    expect(await walk(keyv)).toEqual([
      ["a", "whole"],
      ["b", null],
      ["c", null],
      ["d", "whole"],
    ]);
  });

  test("a store iterates over more keys than one page holds", async () => {
    const keyv = stores.open("walked");
    const entries = Array.from({ length: 2_500 }, (_, index) => ({ key: `k${index}`, value: index }));
    await keyv.setMany(entries);
    expect(new Set((await walk(keyv)).map(([key]) => key)).size).toBe(2_500);
    await keyv.clear();
    expect(await walk(keyv)).toEqual([]);
  });

  test("a store stops checking its reachability for a caller that stopped waiting", async () => {
    expect(await stores.isReachable(AbortSignal.timeout(10_000))).toBe(true);
    expect(await stores.isReachable(AbortSignal.abort())).toBe(false);
  });
}

async function walk(keyv: Keyv): Promise<Array<[string, unknown]>> {
  const entries: Array<[string, unknown]> = [];
  for await (const entry of keyv.iterator?.(undefined) ?? []) entries.push(entry as [string, unknown]);
  return entries.toSorted(([left], [right]) => left.localeCompare(right));
}

describe("createStores, embedded", () => {
  storesContract(() => ({
    stores: createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT),
    put: async (key, text) => database.prepare("INSERT OR REPLACE INTO keyv (key, value) VALUES (?, ?)").run(key, text),
  }));

  test("the embedded store is unreachable, and rejects, once the database is closed", async () => {
    const closed = openDatabase(":memory:");
    const stores = createStores({ redisUrl: undefined, database: closed, log: silent }, NO_RIGHT);
    closed.close();
    expect(await stores.isReachable(AbortSignal.timeout(10_000))).toBe(false);
    await expect(stores.open("a").get("b")).rejects.toThrow();
    await stores.close();
  });

  test("the embedded store makes one write for all callers within a second who ask whether it is reachable", async () => {
    const asked = openDatabase(":memory:");
    const stores = createStores({ redisUrl: undefined, database: asked, log: silent }, NO_RIGHT);
    const countChanges = () => Number(asked.prepare("SELECT total_changes() AS count").get()?.["count"]);
    const before = countChanges();
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const ask = () => stores.isReachable(new AbortController().signal);
    expect(await Promise.all([ask(), ask(), ask()])).toEqual([true, true, true]);
    expect(countChanges()).toBe(before + 1);
    vi.advanceTimersByTime(1_000);
    expect(await ask()).toBe(true);
    expect(countChanges()).toBe(before + 2);
    await stores.close();
    asked.close();
  });

  test("the embedded store is unreachable while the disk accepts no writes", async () => {
    const full = openDatabase(":memory:");
    const stores = createStores({ redisUrl: undefined, database: full, log: silent }, NO_RIGHT);
    full.exec("PRAGMA query_only = ON");
    expect(await stores.isReachable(AbortSignal.timeout(10_000))).toBe(false);
    full.exec("PRAGMA query_only = OFF");
    expect(await stores.isReachable(AbortSignal.timeout(10_000))).toBe(true);
    await stores.close();
    full.close();
  });
});

describe.skipIf(isRedisMissing)("createStores on Redis (needs redis-server)", () => {
  let redis: RedisServer;
  let client: ReturnType<typeof createClient>;
  beforeAll(async () => {
    redis = await startRedis();
    client = createClient({ url: redis.url });
    await client.connect();
  });
  afterAll(async () => {
    await client?.close();
    await redis?.stop();
  });

  storesContract(() => ({
    stores: createStores({ redisUrl: redis.url, database, log: silent }, NO_RIGHT),
    put: (key, text) => client.set(`palaver:${key}`, text),
  }));

  test("the store on Redis prefixes its keys and lets the server expire them", async () => {
    const stores = createStores({ redisUrl: redis.url, database, log: silent }, NO_RIGHT);
    await stores.open("turns").setMany([{ key: "t1", value: 1, ttl: 60_000 }]);
    expect(await client.get("palaver:turns:t1")).toBe('{"v":2,"value":1}');
    expect(await client.pTTL("palaver:turns:t1")).toBeGreaterThan(0);
    await stores.close();
  });

  test.each([
    ["ahead by forty days", 40 * DAY_MS],
    ["back by forty years", -40 * 365 * DAY_MS],
  ])("a process erases nothing early if its clock is %s for a while, from its start or later", async (_, byMs) => {
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const today = Date.now();
    const start = () => createStores({ redisUrl: redis.url, database, log: silent }, NO_RIGHT);
    const [wrong, right] = [start(), start()];
    const all = [wrong, right].map((stores) => stores.open("jump"));
    vi.setSystemTime(today + byMs);
    // The first command from this process to Redis.
    await all[0]?.set("first", 1, 30 * DAY_MS);
    vi.setSystemTime(today);
    await all[1]?.set("before", 1, 30 * DAY_MS);
    vi.setSystemTime(today + byMs);
    await all[1]?.set("within", 1, 30 * DAY_MS);
    for (const now of [today + byMs, today]) {
      vi.setSystemTime(now);
      for (const keyv of all) expect(await keyv.getMany(["first", "before", "within"])).toEqual([1, 1, 1]);
    }
    for (const key of ["first", "before", "within"]) {
      const leftMs = await client.pTTL(`palaver:jump:${key}`);
      expect(leftMs).toBeGreaterThan(29 * DAY_MS);
      expect(leftMs).toBeLessThanOrEqual(30 * DAY_MS);
    }
    await Promise.all([wrong.close(), right.close()]);
  });

  test("the store on Redis writes and deletes many keys in one command", async () => {
    const stores = createStores({ redisUrl: redis.url, database, log: silent }, NO_RIGHT);
    const keyv = stores.open("tx");
    // Makes the server load the script.
    await keyv.setMany([{ key: "first", value: 0 }]);
    const commands = await countCommands(client, async () => {
      await keyv.setMany([
        { key: "a", value: 1 },
        { key: "b", value: 2, ttl: 5_000 },
      ]);
      await keyv.deleteMany(["a", "b"]);
    });
    expect(commands).toMatchObject({ evalsha: 2 });
    expect(commands).not.toHaveProperty("multi");
    await stores.close();
  });

  describe("Keyv's rules for a store on Redis", () => {
    let base: OpenStore;
    beforeAll(() => {
      base = createRedisStore(redis.url, silent);
    });
    afterAll(() => base.close());
    // Keyv asks a shared store to clear itself, so each namespace needs a view that knows its own keys.
    describeKeyvStore(
      (namespace) => new Keyv({ store: createNamespaceView(base.storeUnder(NO_RIGHT), namespace), namespace }),
    );
  });
});

describe.skipIf(isRedisMissing)("an outage of Redis (needs redis-server)", () => {
  let redis: RedisServer;
  let stores: Stores;
  let keyv: Entries;
  let lines: Array<Record<string, unknown>>;
  beforeEach(async () => {
    redis = await startRedis();
    const recording = recordingLog();
    lines = recording.lines;
    stores = createStores({ redisUrl: redis.url, database, log: recording.log }, NO_RIGHT);
    keyv = stores.open("outage");
    await keyv.set("a", 1);
  });
  afterEach(async () => {
    await stores?.close();
    await redis?.stop();
  });

  test("an outage of Redis makes every operation reject, never look empty, and ends when the server is back", async () => {
    await redis.kill();
    const operations = [
      keyv.get("a"),
      keyv.getMany(["a"]),
      keyv.has("a"),
      keyv.set("a", 2),
      keyv.setMany([{ key: "a", value: 2 }]),
      keyv.delete("a"),
      keyv.deleteMany(["a"]),
      keyv.clear(),
      walk(keyv),
    ];
    const results = await Promise.allSettled(operations);
    expect(results.map(({ status }) => status)).toEqual(operations.map(() => "rejected"));
    expect(await stores.isReachable(AbortSignal.timeout(10_000))).toBe(false);
    await redis.restart();
    await vi.waitFor(() => keyv.set("b", 3), 10_000);
    expect(await keyv.getMany(["a", "b"])).toEqual([undefined, 3]);
    // The whole outage has only one line, however many attempts failed, and its end has another.
    expect(lines.map(({ msg }) => msg)).toEqual(["Redis is not reachable; retrying", "Redis is reachable again"]);
  });

  test("an outage of Redis in the middle of an operation makes the operation reject", async () => {
    redis.freeze();
    const results = Promise.allSettled([keyv.get("a"), keyv.getMany(["a"]), keyv.has("a"), keyv.deleteMany(["a"])]);
    // After one turn of the event loop, the operations have started.
    await new Promise((resolve) => setImmediate(resolve));
    await redis.kill();
    expect((await results).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected", "rejected"]);
  });

  test("the store counts a Redis that refuses writes as unavailable, and shows nothing as stored", async () => {
    const client = createClient({ url: redis.url });
    await client.connect();
    await client.configSet("maxmemory", "1");
    await expect(keyv.set("a", 2)).rejects.toThrow(/OOM/);
    const refused = await keyv.setMany([{ key: "b", value: 2 }]).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(StoreError);
    expect(await stores.isReachable(AbortSignal.timeout(10_000))).toBe(false);
    await client.configSet("maxmemory", "0");
    expect(await stores.isReachable(AbortSignal.timeout(10_000))).toBe(true);
    expect(await keyv.getMany(["a", "b"])).toEqual([1, undefined]);
    await client.close();
  });

  test("the store fails later calls in a known outage without another wait", async () => {
    await redis.kill();
    await expect(keyv.get("a")).rejects.toThrow(StoreError);
    const began = performance.now();
    for (let count = 0; count < 20; count++) await expect(keyv.get("a")).rejects.toThrow(/did not answer/);
    // If each call waited for the previous call, all calls would take 40 s.
    expect(performance.now() - began).toBeLessThan(20_000);
  });

  test("an operation waits until a short outage of Redis is over", async () => {
    await redis.restart();
    expect(await keyv.get("a")).toBeUndefined();
  });

  test("an outage of Redis can start before the service, with a server that accepts connections and says nothing", async () => {
    const mute = createServer(() => {}).listen(0, "127.0.0.1");
    await once(mute, "listening");
    const address = mute.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const muted = createStores({ redisUrl: `redis://:hush-hush@127.0.0.1:${port}`, database, log: silent }, NO_RIGHT);
    await expect(muted.open("mute").get("a")).rejects.toThrow(/^Redis at 127\.0\.0\.1:\d+ did not answer within/);
    await muted.close();
    mute.close();
  });

  test("the store rejects operations on a frozen Redis, and its client reconnects", async () => {
    redis.freeze();
    await expect(keyv.get("a")).rejects.toThrow(/did not answer/);
    redis.thaw();
    await vi.waitFor(async () => expect(await keyv.get("a")).toBe(1), 10_000);
    expect(lines).toMatchObject([{ reason: "it does not answer" }, { msg: "Redis is reachable again" }]);
  });

  test("the store on Redis rejects operations at once after it was closed", async () => {
    await stores.close();
    await expect(keyv.get("a")).rejects.toThrow(/is closed/);
  });
});

describe("an invalid REDIS_URL", () => {
  test("the service refuses an invalid REDIS_URL without quoting it, because it can contain a password", () => {
    for (const redisUrl of ["localhost:6379", "http://:hush-hush@host", "hush-hush"]) {
      const start = () => createStores({ redisUrl, database, log: silent }, NO_RIGHT);
      expect(start).toThrow(/^REDIS_URL is not the address of a Redis server/);
      expect(start).not.toThrow(/hush-hush/);
    }
  });
});
