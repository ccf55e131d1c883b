import { describe, expect, test } from "vitest";
import { createMeter, UNLEARNT } from "../../src/pacing/meter.ts";
import type { PlatformCounter } from "../support/pacing/platform.ts";
import { fixedCounter, leakyCounter, slidingCounter } from "../support/pacing/platform.ts";

/** Makes a call at each of the times, one after another, against a counter half a trip away. */
function call(meter: ReturnType<typeof createMeter>, counter: PlatformCounter, times: number[], trip = 0.2): void {
  for (const at of times) {
    meter.sent("edit", at);
    const verdict = counter.take(at + trip / 2);
    const answer = verdict.ok ? ({ ok: true, budget: verdict.headers } as const) : verdict;
    meter.done("edit", at, answer, at + trip);
  }
}

describe("meter", () => {
  test("learns a fixed window from two answers", () => {
    const meter = createMeter(UNLEARNT);
    call(meter, fixedCounter(5, 1), [0]);
    expect(meter.learnt()).toMatchObject({ mode: "unknown", n: 5, w: 5 });
    call(meter, fixedCounter(5, 1), [0.3]);
    const two = createMeter(UNLEARNT);
    const counter = fixedCounter(5, 1);
    call(two, counter, [0, 0.3]);
    expect(two.learnt()).toEqual({ mode: "fixed", n: 5, w: 1 });
    expect(two.credit(0.5)).toBe(3);
  });

  test("learns a leaky counter from two answers", () => {
    const meter = createMeter(UNLEARNT);
    call(meter, leakyCounter(5, 5), [0, 0.3]);
    expect(meter.learnt()).toEqual({ mode: "leaky", n: 5, w: 5 });
    // The reset is a trip off at most: a call is counted as returned a trip later than it is.
    expect([0.5, 1.3, 2.3].map(meter.credit)).toEqual([3, 4, 5]);
  });

  test("counts its own calls for good when no model fits, and tells other meters nothing of it", () => {
    const meter = createMeter(UNLEARNT);
    call(meter, slidingCounter(5, 5), [0, 1, 2, 5.4]);
    expect(meter.learnt().mode).toBe("unknown");
    call(meter, slidingCounter(5, 5), [6, 6.4]);
    expect(meter.credit(6.6)).toBe(1);
  });

  test("takes the limit from the header and keeps the spacing", () => {
    const meter = createMeter(UNLEARNT);
    call(meter, fixedCounter(10, 10), [0]);
    expect(meter.learnt()).toEqual({ mode: "unknown", n: 10, w: 10 });
    expect(meter.credit(0.2)).toBe(9);
  });

  test("plans a counter that shows a reset of one second as a call per second", () => {
    const meter = createMeter(UNLEARNT);
    call(meter, leakyCounter(5, 5), [0]);
    expect(meter.gap(0.2)).toBeLessThan(0.5);
    const other = createMeter(UNLEARNT);
    call(other, fixedCounter(5, 5), [0]);
    expect(other.gap(0.2)).toBeGreaterThan(0.9);
  });

  test("starts nothing before the wait of a refusal is over", () => {
    const meter = createMeter({ mode: "leaky", n: 5, w: 5 });
    meter.sent("edit", 0);
    meter.done("edit", 0, { ok: false, retryAfter: 7 }, 0.2);
    expect([1, 7.1].map(meter.credit)).toEqual([0, 0]);
    expect(meter.creditAt(1, 0.2)).toBeCloseTo(7.2);
    expect(meter.keepUntil()).toBe(60);
  });

  test("corrects what it was told of another channel", () => {
    const wrong = createMeter({ mode: "leaky", n: 5, w: 1 });
    call(wrong, fixedCounter(5, 5), [0, 0.3]);
    expect(wrong.learnt()).toEqual({ mode: "fixed", n: 5, w: 5 });
    const other = createMeter({ mode: "fixed", n: 5, w: 5 });
    call(other, leakyCounter(5, 5), [0, 0.3]);
    expect(other.learnt()).toEqual({ mode: "leaky", n: 5, w: 5 });
  });

  test("gives up a leaky model when more is in the counter than it could hold", () => {
    const meter = createMeter({ mode: "leaky", n: 10, w: 100 });
    meter.sent("edit", 0);
    meter.done("edit", 0, { ok: true, budget: { limit: 10, remaining: 5, resetAfter: 9 } }, 0.2);
    expect(meter.learnt().mode).toBe("unknown");
    expect(meter.credit(0.2)).toBe(5);
  });

  test("goes back to counting when the call that opens a window is not accounted for", () => {
    const meter = createMeter(UNLEARNT);
    const counter = fixedCounter(5, 5);
    call(meter, counter, [0, 0.3]);
    meter.sent("edit", 5.2);
    meter.done("edit", 5.2, { ok: false }, 5.4);
    expect(meter.learnt().mode).toBe("unknown");
    expect(meter.credit(5.4)).toBe(3);
  });

  test("knows what it does not get to know: five calls in five seconds without headers", () => {
    const meter = createMeter(UNLEARNT);
    for (const at of [0, 1, 2, 3, 4]) {
      meter.sent("edit", at);
      meter.done("edit", at, { ok: true }, at + 0.2);
    }
    expect(meter.isRich(0)).toBe(false);
    expect(meter.credit(4.2)).toBe(0);
    expect(meter.creditAt(1, 4.2)).toBeCloseTo(5.2);
    expect(meter.creditAt(6, 4.2)).toBe(Infinity);
  });
});
