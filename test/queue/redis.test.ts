import { afterAll, beforeAll, describe, onTestFinished } from "vitest";
import { createRedisQueue } from "../../src/queue/redis.ts";
import { connectToRedis } from "../../src/store/redis-connection.ts";
import { silent } from "../support/log.ts";
import { type QueueWorld, queueContract } from "../support/queue-contract.ts";
import { isRedisMissing, type RedisServer, startRedis } from "../support/redis.ts";

describe.skipIf(isRedisMissing)("the queue on Redis (needs redis-server)", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  function startWorld(): QueueWorld {
    const connection = connectToRedis(redis.url, silent);
    const opened: Array<{ close(graceMs: number): Promise<void> }> = [];
    onTestFinished(async () => {
      await Promise.all(opened.map((queue) => queue.close(0)));
      await connection.run(() => connection.client.flushAll());
      await connection.close();
    });
    return {
      open: ({ maxActive = 16, log = silent, cutMs = 5 } = {}) => {
        const queue = createRedisQueue({ connection, maxActive, log, now: Date.now, retryMs: [1, 4], cutMs });
        opened.push(queue);
        return queue;
      },
    };
  }

  queueContract(startWorld);
});
