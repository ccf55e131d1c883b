import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import { NO_RIGHT } from "../../src/port/right.ts";
import { PART_KEYS, PARTITIONS } from "../../src/queue/partition.ts";
import type { Queue } from "../../src/queue/queue.ts";
import { createStores, type Stores } from "../../src/store/keyv.ts";
import { connectToRedis } from "../../src/store/redis-connection.ts";
import { silent } from "./log.ts";
import { startRedis } from "./redis.ts";

/** The Redis of the tests' bots. If undefined, the bots use their own databases. */
let redisUrl: string | undefined;
/** The number of the Redis database for each bot's own database. Bots that share one also share the other. */
const numbers = new WeakMap<DatabaseSync, number>();
let made = 0;
/** The queues and stores that the current test has opened. */
const open = { queues: new Set<Queue>(), stores: new Set<Stores>() };

/** Maximum number of bots' databases per test file. */
const MAX_DATABASES = 10_000;

/**
 * True if all tests' bots use Redis. A test must then be skipped if it reads the bot's database, makes it fail,
 * abandons a bot, or depends on how the bot combines two simultaneous events.
 */
export const isOnRedis = process.env["QUEUE"] === "redis";

export function openBotStores(database: DatabaseSync, log: Logger = silent): Stores {
  if (redisUrl === undefined) return createStores({ redisUrl, database, log }, NO_RIGHT);
  const number = numbers.get(database) ?? (made += 1);
  numbers.set(database, number);
  const stores = createStores({ redisUrl: `${redisUrl}/${number}`, database, log }, NO_RIGHT);
  open.stores.add(stores);
  return stores;
}

/** Counts the waiting events now, because the queue's own count can be outdated. */
export async function countWaiting(queue: Queue, { shared }: Stores): Promise<number> {
  if (shared === undefined) return queue.depth().waiting;
  const keys = Array.from({ length: PARTITIONS }, (_, partition) => PART_KEYS.journal(partition));
  const counts = await Promise.all(keys.map((key) => shared.run(() => shared.client.xLen(key))));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Returns all entries, with their keys, of the bots with this database. Tests search this text for words. */
export async function readKept(database: DatabaseSync): Promise<string[]> {
  const number = numbers.get(database);
  if (redisUrl !== undefined && number !== undefined) return readRedis(`${redisUrl}/${number}`);
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  return tables.flatMap(({ name }) =>
    database
      .prepare(`SELECT * FROM "${String(name)}"`)
      .all()
      .map((row) => JSON.stringify(row)),
  );
}

async function readRedis(url: string): Promise<string[]> {
  const { client, run, close } = connectToRedis(url, silent);
  const read = {
    string: (key: string) => client.get(key),
    list: (key: string) => client.lRange(key, 0, -1),
    set: (key: string) => client.sMembers(key),
    hash: (key: string) => client.hGetAll(key),
    zset: (key: string) => client.zRange(key, 0, -1),
    stream: (key: string) => client.xRange(key, "-", "+"),
  };
  const kept: string[] = [];
  await run(async () => {
    for await (const keys of client.scanIterator()) {
      for (const key of keys) {
        const type = await client.type(key);
        // The entry expired after the scan found it.
        if (type === "none") continue;
        kept.push(JSON.stringify([key, await read[type as keyof typeof read](key)]));
      }
    }
  });
  await close();
  return kept;
}

/** Closes a queue on Redis after the test, so that its work does not reach the next test. */
export function endWithTest(queue: Queue): void {
  if (redisUrl !== undefined) open.queues.add(queue);
}

/** Starts a Redis for all tests' bots. The returned function stops it. */
export async function putBotsOnRedis(): Promise<() => Promise<void>> {
  const redis = await startRedis({ databases: MAX_DATABASES });
  redisUrl = redis.url;
  made = 0;
  return async () => {
    redisUrl = undefined;
    await redis.stop();
  };
}

/** Closes the queues and stores that the test's bots opened on Redis. */
export async function closeBotsOnRedis(): Promise<void> {
  const { queues, stores } = open;
  await Promise.all([...queues].map((queue) => queue.close(0)));
  await Promise.all([...stores].map((one) => one.close()));
  for (const all of [queues, stores]) all.clear();
}
