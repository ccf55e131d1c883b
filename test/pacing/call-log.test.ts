import { describe, expect, test } from "vitest";
import { createCallLog } from "../../src/pacing/call-log.ts";

describe("the log of calls to a platform", () => {
  test("the call log makes each call available again one window after the call", () => {
    const log = createCallLog(3, 60_000);
    for (const now of [0, 10_000, 20_000]) log.sent(now);
    expect([20_000, 59_000, 61_000, 71_000, 81_000].map(log.credit)).toEqual([0, 0, 1, 2, 3]);
    expect([1, 2, 3, 4].map((needs) => log.creditAt(needs, 20_000))).toEqual([60_000, 70_000, 80_000, Infinity]);
    expect(log.creditAt(1, 65_000)).toBe(65_000);
    expect(log.count(65_000)).toBe(2);
  });

  test("the call log forgets nothing if it is queried about a future moment", () => {
    const log = createCallLog(1, 60_000);
    log.sent(0);
    expect(log.credit(100_000)).toBe(1);
    expect(log.credit(30_000)).toBe(0);
  });

  test("the call log accepts calls that are entered late", () => {
    const log = createCallLog(2, 60_000);
    log.sent(50_000);
    log.sent(40_000);
    expect([99_000, 101_000, 111_000].map(log.credit)).toEqual([0, 1, 2]);
  });

  test("the call log allows no call before a rate limit's wait is over, then recovers slowly", () => {
    const log = createCallLog(60, 60_000);
    for (let second = 0; second < 10; second++) log.sent(second * 1_000);
    log.done({ ok: false, retryAfterMs: 30_000 }, 10_000);
    expect(log.isTight(10_000)).toBe(true);
    expect([10_000, 39_900, 40_000, 41_000, 42_000, 43_000].map(log.credit)).toEqual([0, 0, 0, 0, 1, 2]);
    expect(log.creditAt(1, 10_000)).toBeCloseTo(40_000 + 1_000 / 0.9);
    // Ten calls were made before the rate limit, so the limit is assumed to be ten. Half of it is available.
    expect(log.credit(300_000)).toBe(5);
    expect(log.creditAt(20, 300_000)).toBe(610_000);
    expect(log.credit(611_000)).toBe(60);
    expect(log.keepUntil()).toBe(610_000);
  });

  test("after a rate limit, the call log spends the few remaining calls one at a time", () => {
    const log = createCallLog(60, 60_000);
    log.done({ ok: false, retryAfterMs: 0 }, 0);
    log.sent(10_000);
    expect(log.credit(10_000)).toBe(1);
    log.sent(10_000);
    expect(log.credit(10_000)).toBe(0);
  });

  test("the call log learns nothing from an error that is not a rate limit", () => {
    const log = createCallLog(1, 60_000);
    log.done({ ok: false }, 0);
    expect(log.credit(0)).toBe(1);
    expect(log.keepUntil()).toBe(-Infinity);
  });
});
