import { describe, expect, test } from "vitest";
import { createCallLog } from "../../src/pacing/call-log.ts";

describe("call log", () => {
  test("gives each call back one window after it was made", () => {
    const log = createCallLog(3, 60);
    for (const now of [0, 10, 20]) log.sent(now);
    expect([20, 59, 61, 71, 81].map(log.credit)).toEqual([0, 0, 1, 2, 3]);
    expect([1, 2, 3, 4].map((needs) => log.creditAt(needs, 20))).toEqual([60, 70, 80, Infinity]);
    expect(log.creditAt(1, 65)).toBe(65);
    expect(log.count(65)).toBe(2);
  });

  test("forgets nothing when it is asked about a moment to come", () => {
    const log = createCallLog(1, 60);
    log.sent(0);
    expect(log.credit(100)).toBe(1);
    expect(log.credit(30)).toBe(0);
  });

  test("takes calls that are entered late", () => {
    const log = createCallLog(2, 60);
    log.sent(50);
    log.sent(40);
    expect([99, 101, 111].map(log.credit)).toEqual([0, 1, 2]);
  });

  test("starts nothing before the wait of a refusal, and comes back slowly", () => {
    const log = createCallLog(60, 60);
    for (let now = 0; now < 10; now++) log.sent(now);
    log.done({ ok: false, retryAfter: 30 }, 10);
    expect(log.isTight(10)).toBe(true);
    expect([10, 39.9, 40, 41, 42, 43].map(log.credit)).toEqual([0, 0, 0, 0, 1, 2]);
    expect(log.creditAt(1, 10)).toBeCloseTo(40 + 1 / 0.9);
    // Half of the ten calls before the refusal is as deep as the limit is taken to be.
    expect(log.credit(300)).toBe(5);
    expect(log.creditAt(20, 300)).toBe(610);
    expect(log.credit(611)).toBe(60);
    expect(log.keepUntil()).toBe(610);
  });

  test("spends the tight credit call by call", () => {
    const log = createCallLog(60, 60);
    log.done({ ok: false, retryAfter: 0 }, 0);
    log.sent(10);
    expect(log.credit(10)).toBe(1);
    log.sent(10);
    expect(log.credit(10)).toBe(0);
  });

  test("learns nothing from an error that is no refusal", () => {
    const log = createCallLog(1, 60);
    log.done({ ok: false }, 0);
    expect(log.credit(0)).toBe(1);
    expect(log.keepUntil()).toBe(-Infinity);
  });
});
