import { once } from "node:events";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { connectToRedis, type RedisConnection } from "../../src/store/redis-connection.ts";
import { silent } from "./log.ts";
import { type RedisOptions, type RedisServer, startRedis } from "./redis.ts";

/** A connection that stands, which may take longer on a busy machine than an operation waits for it. */
export async function connectWell(url: string): Promise<RedisConnection> {
  const connection = connectToRedis(url, silent);
  if (!connection.client.isReady) await once(connection.client, "ready");
  return connection;
}

/** One Redis for all tests of a `describe`, empty at the beginning of each; there is one from the first test on. */
export function shareRedis(options: RedisOptions = {}): {
  readonly redis: RedisServer;
  readonly connection: RedisConnection;
} {
  let redis: RedisServer;
  let connection: RedisConnection;
  beforeAll(async () => {
    redis = await startRedis(options);
    connection = await connectWell(redis.url);
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
