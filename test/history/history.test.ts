import type { DatabaseSync } from "node:sqlite";
import { createClient } from "@keyv/redis";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { isRedisMissing, type RedisServer, startRedis } from "../../lab/support/redis.ts";
import { turnsOver } from "../../lab/support/turns.ts";
import { createHistory } from "../../src/history/history.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { openDatabase } from "../../src/store/database.ts";
import { createStores, type Stores } from "../../src/store/keyv.ts";
import { answered, historyContract, said } from "../support/history-contract.ts";

let database: DatabaseSync;
beforeAll(() => {
  database = openDatabase(":memory:");
});
afterAll(() => database.close());

describe("createHistory on SQLite", () => {
  let stores: Stores;
  beforeAll(() => {
    stores = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
  });
  afterAll(() => stores.close());

  historyContract((namespace) => stores.open(namespace));

  test("the history appends and reads with the same statements and rows at any length", async () => {
    const counted = openDatabase(":memory:");
    const statements = countStatements(counted);
    const rows = () => Number(counted.prepare("SELECT total_changes() AS n").get()?.["n"]);
    const stores = createStores({ redisUrl: undefined, database: counted, log: silent }, NO_RIGHT);
    const costs = await costsAtLengths(stores.open, async (work) => {
      const [statementsBefore, rowsBefore] = [statements(), rows()];
      await work();
      return { rows: rows() - rowsBefore, statements: statements() - statementsBefore };
    });
    // The rows are the entry, its id, its alias and the head, and three for their owners.
    expect(costs[0]).toMatchObject({ rows: 7 });
    expect(costs[1]).toEqual(costs[0]);
    expect(costs[2]).toEqual(costs[0]);
    await stores.close();
    counted.close();
  }, 60_000);

  test("the history keeps everything for its TTL and no longer", async () => {
    const history = createHistory({ ...stores, ttlMs: 40, log: silent, now: Date.now });
    await history.append("sqlite:ttl", said("ttl1", "x"), ["ttl2"]);
    await history.setFollowed("sqlite:ttl", true);
    const ttls = database
      .prepare("SELECT expires_at FROM keyv WHERE key LIKE '%sqlite%3Attl%' OR key LIKE '%ttl1' OR key LIKE '%ttl2'")
      .all();
    expect(ttls.length).toBe(4);
    expect(ttls.every(({ expires_at }) => typeof expires_at === "number")).toBe(true);
    await vi.waitFor(async () => expect(await history.isFollowed("sqlite:ttl")).toBe(false));
    expect(await history.read("sqlite:ttl", { maxEntries: 5 })).toEqual({ entries: [], hasOlder: false });
    expect(await history.find("ttl2")).toBeUndefined();
  });
});

describe.skipIf(isRedisMissing)("createHistory on Redis (needs redis-server)", () => {
  let redis: RedisServer;
  let stores: Stores;
  beforeAll(async () => {
    redis = await startRedis();
    stores = createStores({ redisUrl: redis.url, database, log: silent }, NO_RIGHT);
  });
  afterAll(async () => {
    await stores?.close();
    await redis?.stop();
  });

  historyContract((namespace) => stores.open(namespace));

  test("the history appends and reads with the same commands and bytes at any length", async () => {
    const client = createClient({ url: redis.url });
    await client.connect();
    const costs = await costsAtLengths(stores.open, async (work) => {
      const [first, second] = [await readTraffic(client), await readTraffic(client)];
      await work();
      const third = await readTraffic(client);
      // The measurement itself also causes traffic.
      const bytes = third.bytes - second.bytes - (second.bytes - first.bytes);
      return { bytes, commands: third.commands.map((calls, index) => calls - (second.commands[index] ?? 0)) };
    });
    await client.close();
    const [short, ...longer] = costs;
    if (short === undefined) throw new Error("nothing was measured");
    expect(short.bytes).toBeGreaterThan(5 * 800);
    // One read and one write per append, two reads per read. The script sets four keys and puts three into one index.
    expect(Object.fromEntries(COMMANDS.map((name, index) => [name, short.commands[index]]))).toEqual({
      get: 0,
      mget: 3,
      evalsha: 1,
      set: 4,
      zadd: 1,
      pttl: 1,
    });
    for (const { commands, bytes } of longer) {
      expect(commands).toEqual(short.commands);
      expect(Math.abs(bytes / short.bytes - 1)).toBeLessThan(0.05);
    }
  }, 60_000);
});

/**
 * The cost of one append, and of reading five entries, in conversations with 10, 100 and 500 entries. `count`
 * measures it.
 */
async function costsAtLengths<T>(open: Stores["open"], count: (work: () => Promise<void>) => Promise<T>): Promise<T[]> {
  const history = createHistory({ open, inTurn: turnsOver(open), ttlMs: 600_000, log: silent, now: Date.now });
  const costs: T[] = [];
  let length = 0;
  const id = (kind: string) => `${kind}${String(length).padStart(5, "0")}`;
  for (const target of [10, 100, 500]) {
    for (; length < target - 1; length++) await history.append("cost", said(id("filled"), "x".repeat(800)));
    const work = async () => {
      await history.append("cost", answered(id("answer"), "x".repeat(800)), [id("posted")]);
      await history.read("cost", { maxEntries: 5 });
    };
    costs.push(await count(work));
    length++;
  }
  return costs;
}

/** Counts every executed statement. */
function countStatements(database: DatabaseSync): () => number {
  const prepare = database.prepare.bind(database);
  let calls = 0;
  database.prepare = (sql) => {
    const statement = prepare(sql);
    for (const method of ["get", "run", "all"] as const) {
      const original = statement[method].bind(statement) as (...values: unknown[]) => never;
      statement[method] = (...values: unknown[]) => {
        calls++;
        return original(...values);
      };
    }
    return statement;
  };
  return () => calls;
}

interface TrafficSource {
  info(section: string): Promise<string>;
}

const COMMANDS = ["get", "mget", "evalsha", "set", "zadd", "pttl"];

interface Traffic {
  commands: number[];
  bytes: number;
}

async function readTraffic(client: TrafficSource): Promise<Traffic> {
  const [stats, calls] = [await client.info("stats"), await client.info("commandstats")];
  return {
    commands: COMMANDS.map((name) => numberAfter(calls, `cmdstat_${name}:calls=`)),
    bytes: numberAfter(stats, "total_net_input_bytes:") + numberAfter(stats, "total_net_output_bytes:"),
  };
}

function numberAfter(text: string, name: string): number {
  return Number(new RegExp(`${name}(\\d+)`).exec(text)?.[1] ?? 0);
}
