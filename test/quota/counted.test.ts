import { describe, expect, test } from "vitest";
import { runCounted } from "../../lab/bench/support/counted-run.ts";
import { isRedisMissing } from "../../lab/support/redis.ts";

// `npm run bench -- usage` runs a longer version of this test.
describe.skipIf(isRedisMissing)("processes that are killed while they answer (needs redis-server)", () => {
  test("killed processes count every request that the gateway accepted, and never exceed the limit", async () => {
    const tokens = 40_000;
    const { served, counted, isDone } = await runCounted({
      turns: 30,
      seed: 3,
      processes: 2,
      tokensPerSecond: 500,
      killMs: 600,
      policy: { quotas: { all: { month: { tokens } } } },
      limitMs: 120_000,
    });
    expect(isDone).toBe(true);
    expect(served.promptTokens + served.completionTokens).toBeLessThanOrEqual(tokens);
    // A killed process may have counted a request without sending it.
    expect(counted.requests).toBeGreaterThanOrEqual(served.requests);
    expect(counted.promptTokens).toBeGreaterThanOrEqual(served.promptTokens);
  }, 180_000);
});
