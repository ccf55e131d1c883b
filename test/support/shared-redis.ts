import { afterAll, beforeAll, beforeEach } from "vitest";
import { connectToRedis, type RedisConnection } from "../../src/store/redis-connection.ts";
import { silent } from "./log.ts";
import { type RedisOptions, type RedisServer, startRedis } from "./redis.ts";

/** One Redis for all tests of a `describe`, empty at the beginning of each; there is one from the first test on. */
export function shareRedis(options: RedisOptions = {}): {
  readonly redis: RedisServer;
  readonly connection: RedisConnection;
} {
  let redis: RedisServer;
  let connection: RedisConnection;
  beforeAll(async () => {
    redis = await startRedis(options);
    connection = connectToRedis(redis.url, silent);
  });
  beforeEach(async () => void (await connection.run(() => connection.client.flushAll())));
  afterAll(async () => {
    await connection.close();
    await redis.stop();
  });
  return {
    get redis() {
      return redis;
    },
    get connection() {
      return connection;
    },
  };
}
