import { once } from "node:events";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { type RedisOptions, type RedisServer, startRedis } from "../../lab/support/redis.ts";
import { connectToRedis, type RedisConnection } from "../../src/store/redis-connection.ts";

/** An established connection. On a busy machine, connecting can take longer than an operation waits for it. */
export async function connectWell(url: string): Promise<RedisConnection> {
  const connection = connectToRedis(url, silent);
  if (!connection.client.isReady) await once(connection.client, "ready");
  return connection;
}

/** The numbers of commands that Redis runs for this work, by their names. Scripts add the commands inside them. */
export async function countCommands(
  client: Pick<RedisConnection["client"], "configResetStat" | "info">,
  work: () => Promise<unknown>,
): Promise<Record<string, number>> {
  await client.configResetStat();
  await work();
  const stats = await client.info("commandstats");
  const counts = [...stats.matchAll(/cmdstat_([\w|]+):calls=(\d+)/g)].map(([, name = "", count]) => [
    name,
    Number(count),
  ]);
  return Object.fromEntries(counts) as Record<string, number>;
}

/** One Redis for all tests in a `describe`. It starts with the first test, and is empty at the start of each test. */
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
