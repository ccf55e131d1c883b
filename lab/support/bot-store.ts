import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import { afterEach, beforeAll } from "vitest";
import type { Queue } from "../../src/queue/queue.ts";
import { KEYS } from "../../src/queue/redis/keys.ts";
import { createStores, type Stores } from "../../src/store/keyv.ts";
import { connectToRedis } from "../../src/store/redis-connection.ts";
import { silent } from "./log.ts";
import { startRedis } from "./redis.ts";

/** Where the bots of the tests keep what they have, and what waits for them; absent: in their databases. */
let redisUrl: string | undefined;
/** Bots with the same database have the same one of Redis, all others one of their own: by its number there. */
const numbers = new WeakMap<DatabaseSync, number>();
let made = 0;
/** Of the test that runs. */
const open = { queues: new Set<Queue>(), stores: new Set<Stores>() };

/** In one file of tests. */
const MAX_DATABASES = 10_000;

/**
 * Whether the bots of all tests have Redis. What looks into their database, lets it fail, leaves a bot for dead, or counts on what two
 * events in one moment become, is tried without.
 */
export const isOnRedis = process.env["QUEUE"] === "redis";

export function openBotStores(database: DatabaseSync, log: Logger = silent): Stores {
  if (redisUrl === undefined) return createStores({ redisUrl, database, log });
  const number = numbers.get(database) ?? (made += 1);
  numbers.set(database, number);
  const stores = createStores({ redisUrl: `${redisUrl}/${number}`, database, log });
  open.stores.add(stores);
  return stores;
}

/** How many events wait, now: the queue itself has counted them a while ago. */
export async function countWaiting(queue: Queue, { shared }: Stores): Promise<number> {
  return shared === undefined ? queue.depth().waiting : Number(await shared.run(() => shared.client.get(KEYS.waiting)));
}

/** All that bots with this database have kept, each entry with its key, as text to look for words in. */
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
        // It has expired just now.
        if (type === "none") continue;
        kept.push(JSON.stringify([key, await read[type as keyof typeof read](key)]));
      }
    }
  });
  await close();
  return kept;
}

/** What goes on in a queue on Redis would be heard in the next test. */
export function endWithTest(queue: Queue): void {
  if (redisUrl !== undefined) open.queues.add(queue);
}

/** Gives the bots of all tests around it a Redis. */
export function keepBotsOnRedis(): void {
  beforeAll(async () => {
    const redis = await startRedis({ databases: MAX_DATABASES });
    redisUrl = redis.url;
    made = 0;
    return async () => {
      redisUrl = undefined;
      await redis.stop();
    };
  });
  afterEach(async () => {
    const { queues, stores } = open;
    await Promise.all([...queues].map((queue) => queue.close(0)));
    await Promise.all([...stores].map((one) => one.close()));
    for (const all of [queues, stores]) all.clear();
  });
}
