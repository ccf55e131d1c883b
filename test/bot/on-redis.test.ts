import { describe } from "vitest";
import { keepBotsOnRedis } from "../support/bot-store.ts";
import { isRedisMissing } from "../support/redis.ts";

/** Once more, with the query that makes files of their own of them. `QUEUE=redis npm test` does so with all tests. */
const SUITES = ["./bot.test.ts?redis", "./changes.test.ts?redis", "./buttons.test.ts?redis"];

describe.skipIf(isRedisMissing)("on Redis (needs redis-server)", async () => {
  keepBotsOnRedis();
  for (const suite of SUITES) await import(suite);
});
