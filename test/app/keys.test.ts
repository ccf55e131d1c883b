import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { isRedisMissing, startRedis } from "../../lab/support/redis.ts";
import { readKeys } from "../../src/app/keys.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createStores } from "../../src/store/keyv.ts";

test.skipIf(isRedisMissing)(
  "processes that start together on an empty Redis have the same keys (needs redis-server)",
  async () => {
    const redis = await startRedis();
    onTestFinished(redis.stop);
    const all = Array.from({ length: 5 }, () => {
      const stores = createStores(
        { redisUrl: redis.url, database: new DatabaseSync(":memory:"), log: silent },
        NO_RIGHT,
      );
      onTestFinished(stores.close);
      return stores;
    });
    await Promise.all(all.map(({ open }) => open("warm").get("up")));
    const [first, ...others] = await Promise.all(all.map(readKeys));
    for (const keys of others) expect(keys).toEqual(first);
    expect(new Set(Object.values(first ?? {})).size).toBe(4);
  },
);
