import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { readKeys } from "../../src/app/keys.ts";
import { createStores } from "../../src/store/keyv.ts";
import { silent } from "../support/log.ts";
import { isRedisMissing, startRedis } from "../support/redis.ts";

test.skipIf(isRedisMissing)(
  "processes that begin at once on an empty Redis have the same keys (needs redis-server)",
  async () => {
    const redis = await startRedis();
    onTestFinished(redis.stop);
    const all = Array.from({ length: 5 }, () => {
      const stores = createStores({ redisUrl: redis.url, database: new DatabaseSync(":memory:"), log: silent });
      onTestFinished(stores.close);
      return stores;
    });
    await Promise.all(all.map(({ open }) => open("warm").get("up")));
    const [first, ...others] = await Promise.all(all.map(readKeys));
    for (const keys of others) expect(keys).toEqual(first);
    expect(new Set(Object.values(first ?? {})).size).toBe(4);
  },
);
