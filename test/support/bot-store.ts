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
/** Of the test that runs. */
const open = { queues: new Set<Queue>(), stores: new Set<Stores>() };

let isChosen = process.env["QUEUE"] === "redis";

/**
 * Whether the bots have Redis. What looks into their database, lets it fail, leaves a bot for dead, or counts on what two
 * events in one moment become, is tried without.
 */
export function isOnRedis(): boolean {
  return isChosen;
}

export function openBotStores(database: DatabaseSync, log: Logger = silent): Stores {
  const stores = createStores({ redisUrl, database, log });
  if (redisUrl !== undefined) open.stores.add(stores);
  return stores;
}

/** How many events wait, now: the queue itself has counted them a while ago. */
export async function countWaiting(queue: Queue): Promise<number> {
  const [stores] = open.stores;
  const { shared } = stores ?? {};
  return shared === undefined ? queue.depth().waiting : Number(await shared.run(() => shared.client.get(KEYS.waiting)));
}

/** What is left in a queue on Redis would be given to the queue of the next test. */
export function endWithTest(queue: Queue): void {
  if (redisUrl !== undefined) open.queues.add(queue);
}

/** Gives the bots of all tests around it a Redis, empty for each of them. */
export function keepBotsOnRedis(): void {
  const wasChosen = isChosen;
  isChosen = true;
  let empty = async (): Promise<void> => {};
  beforeAll(async () => {
    const redis = await startRedis();
    const { client, run, close } = connectToRedis(redis.url, silent);
    redisUrl = redis.url;
    empty = async () => {
      const { queues, stores } = open;
      // A test without a bot may have stopped the clock.
      if (queues.size + stores.size === 0) return;
      await Promise.all([...queues].map((queue) => queue.close(0)));
      await Promise.all([...stores].map((one) => one.close()));
      for (const all of [queues, stores]) all.clear();
      await run(() => client.flushAll());
    };
    return async () => {
      redisUrl = undefined;
      isChosen = wasChosen;
      await close();
      await redis.stop();
    };
  });
  afterEach(() => empty());
}
