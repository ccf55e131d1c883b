import { expect, test } from "vitest";
import { createGlobalLimit } from "../../../../adapters/discord/api/global-limit.ts";

test("no second, wherever it begins, has more calls than Discord allows", () => {
  let nowMs = 0;
  const limit = createGlobalLimit(() => nowMs);
  const made: number[] = [];
  for (; nowMs < 10_000; nowMs += 7) {
    try {
      limit.take();
      made.push(nowMs);
    } catch (error) {
      expect(error).toMatchObject({ status: 429, retryAfterMs: expect.any(Number) });
    }
  }
  for (const from of made) expect(made.filter((at) => at >= from && at < from + 1_000).length).toBeLessThanOrEqual(50);
  expect(made.length).toBeGreaterThan(350);
});

test("a call that is refused says how long to wait, and does not count", () => {
  let nowMs = 0;
  const limit = createGlobalLimit(() => nowMs);
  for (let count = 0; count < 45; count++) limit.take();
  for (let count = 0; count < 100; count++) {
    expect(() => limit.take()).toThrow(expect.objectContaining({ retryAfterMs: 1_100 }));
  }
  nowMs = 1_100;
  for (let count = 0; count < 45; count++) limit.take();
});
