import { describe, expect, test } from "vitest";
import { createOwnCalls, type Reading, type Rule } from "../../../../adapters/discord/write/counters.ts";
import {
  createCounterModel,
  createMeter,
  toKind,
  toReference,
  UNLEARNT,
} from "../../../../adapters/discord/write/meter.ts";
import type { PlatformCounter } from "../../../support/pacing/platform.ts";
import { fixedCounter, leakyCounter, slidingCounter } from "../../../support/pacing/platform.ts";

describe("meter", () => {
  /** Makes a call at each of the times, one after another, against a counter half a trip away. */
  function call(meter: ReturnType<typeof createMeter>, counter: PlatformCounter, times: number[], tripMs = 200): void {
    for (const at of times) {
      meter.sent("edit", at);
      const verdict = counter.take(at + tripMs / 2);
      const answer = verdict.ok ? ({ ok: true, budget: verdict.headers } as const) : verdict;
      meter.done("edit", at, answer, at + tripMs);
    }
  }

  test("learns a fixed window from two answers", () => {
    const meter = createMeter(UNLEARNT);
    call(meter, fixedCounter(5, 1_000), [0]);
    expect(meter.learnt()).toMatchObject({ mode: "unknown", limit: 5, windowMs: 5_000 });
    call(meter, fixedCounter(5, 1_000), [300]);
    const two = createMeter(UNLEARNT);
    const counter = fixedCounter(5, 1_000);
    call(two, counter, [0, 300]);
    expect(two.learnt()).toEqual({ mode: "fixed", limit: 5, windowMs: 1_000 });
    expect(two.credit(500)).toBe(3);
  });

  test("learns a leaky counter from two answers", () => {
    const meter = createMeter(UNLEARNT);
    call(meter, leakyCounter(5, 5_000), [0, 300]);
    expect(meter.learnt()).toEqual({ mode: "leaky", limit: 5, windowMs: 5_000 });
    // The reset is a trip off at most: a call is counted as returned a trip later than it is.
    expect([500, 1_300, 2_300].map(meter.credit)).toEqual([3, 4, 5]);
  });

  test("counts its own calls for good when no model fits, and tells other meters nothing of it", () => {
    const meter = createMeter(UNLEARNT);
    call(meter, slidingCounter(5, 5_000), [0, 1_000, 2_000, 5_400]);
    expect(meter.learnt().mode).toBe("unknown");
    call(meter, slidingCounter(5, 5_000), [6_000, 6_400]);
    expect(meter.credit(6_600)).toBe(1);
  });

  test("takes the limit from the header and keeps the spacing", () => {
    const meter = createMeter(UNLEARNT);
    call(meter, fixedCounter(10, 10_000), [0]);
    expect(meter.learnt()).toEqual({ mode: "unknown", limit: 10, windowMs: 10_000 });
    expect(meter.credit(200)).toBe(9);
  });

  test("plans a counter that shows a reset of one second as a call per second", () => {
    const meter = createMeter(UNLEARNT);
    call(meter, leakyCounter(5, 5_000), [0]);
    expect(meter.gap(200)).toBeLessThan(500);
    const other = createMeter(UNLEARNT);
    call(other, fixedCounter(5, 5_000), [0]);
    expect(other.gap(200)).toBeGreaterThan(900);
  });

  test("starts nothing before the wait of a refusal is over", () => {
    const meter = createMeter({ mode: "leaky", limit: 5, windowMs: 5_000 });
    meter.sent("edit", 0);
    meter.done("edit", 0, { ok: false, retryAfterMs: 7_000 }, 200);
    expect([1_000, 7_100].map(meter.credit)).toEqual([0, 0]);
    expect(meter.creditAt(1, 200)).toBeCloseTo(7_200);
    expect(meter.keepUntil()).toBe(60_000);
  });

  test("corrects what it was told of another channel", () => {
    const wrong = createMeter({ mode: "leaky", limit: 5, windowMs: 1_000 });
    call(wrong, fixedCounter(5, 5_000), [0, 300]);
    expect(wrong.learnt()).toEqual({ mode: "fixed", limit: 5, windowMs: 5_000 });
    const other = createMeter({ mode: "fixed", limit: 5, windowMs: 5_000 });
    call(other, leakyCounter(5, 5_000), [0, 300]);
    expect(other.learnt()).toEqual({ mode: "leaky", limit: 5, windowMs: 5_000 });
  });

  test("gives up a leaky model when more is in the counter than it could hold", () => {
    const meter = createMeter({ mode: "leaky", limit: 10, windowMs: 100_000 });
    meter.sent("edit", 0);
    meter.done("edit", 0, { ok: true, budget: { limit: 10, remaining: 5, resetAfterMs: 9_000 } }, 200);
    expect(meter.learnt().mode).toBe("unknown");
    expect(meter.credit(200)).toBe(5);
  });

  test("goes back to counting when the call that opens a window is not accounted for", () => {
    const meter = createMeter(UNLEARNT);
    const counter = fixedCounter(5, 5_000);
    call(meter, counter, [0, 300]);
    meter.sent("edit", 5_200);
    meter.done("edit", 5_200, { ok: false }, 5_400);
    expect(meter.learnt().mode).toBe("unknown");
    expect(meter.credit(5_400)).toBe(3);
  });

  test("knows what it does not get to know: five calls in five seconds without headers", () => {
    const meter = createMeter(UNLEARNT);
    for (const at of [0, 1_000, 2_000, 3_000, 4_000]) {
      meter.sent("edit", at);
      meter.done("edit", at, { ok: true }, at + 200);
    }
    expect(meter.isRich(0)).toBe(false);
    expect(meter.credit(4_200)).toBe(0);
    expect(meter.creditAt(1, 4_200)).toBeCloseTo(5_200);
    expect(meter.creditAt(6, 4_200)).toBe(Infinity);
  });
});

describe("counter model", () => {
  function modelOf() {
    const rule: Rule = { limit: 5, windowMs: 5_000, tripMs: 200, calls: createOwnCalls() };
    const model = createCounterModel(rule, "unknown");
    return {
      model,
      rule,
      call(at: number) {
        rule.calls.add({ at, kind: "post", answeredAt: Infinity });
        model.sent(at);
      },
      answer(sentAt: number, answeredAt: number, remaining: number, resetMs: number) {
        rule.calls.answered(sentAt, "post", answeredAt);
        const inFlight = rule.calls.overlapping(sentAt, answeredAt);
        const [resetFrom, resetUntil] = [sentAt + resetMs, answeredAt + resetMs];
        model.heard({ kind: "post", sentAt, answeredAt, resetMs, remaining, resetFrom, resetUntil, inFlight }, 5);
      },
      fail(sentAt: number, answeredAt: number) {
        rule.calls.answered(sentAt, "post", answeredAt);
        model.unheard(sentAt);
      },
    };
  }

  test("knows what is left when all calls that were made together are answered", () => {
    const { model, call, answer } = modelOf();
    for (const at of [0, 10, 20]) call(at);
    answer(0, 200, 4, 4_900);
    answer(10, 210, 3, 4_900);
    expect(model.counter().credit(210)).toBe(1);
    answer(20, 220, 2, 4_900);
    expect(model.counter().credit(220)).toBe(2);
  });

  test("stays in doubt by each call among them that was answered without headers", () => {
    const { model, call, answer, fail } = modelOf();
    for (const at of [0, 10, 20]) call(at);
    // Somebody else's call is in the counter as well, so that the own log is not what limits.
    answer(0, 200, 3, 4_900);
    answer(10, 210, 2, 4_900);
    fail(20, 220);
    expect(model.counter().credit(220)).toBe(1);
    expect(model.mode()).toBe("unknown");
  });

  test("learns the kind also from calls that were made together", () => {
    const { model, call, answer } = modelOf();
    for (const at of [0, 10]) call(at);
    answer(0, 200, 4, 4_900);
    answer(10, 210, 3, 4_900);
    call(1_000);
    answer(1_000, 1_200, 2, 3_900);
    expect(model.mode()).toBe("fixed");
    expect(model.counter().credit(1_200)).toBe(2);
  });

  test("does not compare answers across a call that may or may not have counted", () => {
    const { model, call, answer, fail } = modelOf();
    call(0);
    answer(0, 200, 4, 4_900);
    call(1_000);
    fail(1_000, 1_200);
    call(2_000);
    answer(2_000, 2_200, 3, 2_900);
    expect(model.mode()).toBe("unknown");
  });

  test("gives up a fixed window that begins with less than it should, for good", () => {
    const { model, call, answer } = modelOf();
    call(0);
    answer(0, 200, 4, 4_900);
    call(3_000);
    answer(3_000, 3_200, 3, 1_900);
    expect(model.mode()).toBe("fixed");
    call(5_200);
    answer(5_200, 5_400, 3, 2_700);
    expect(model.mode()).toBe("sliding");
    call(5_500);
    answer(5_500, 5_700, 2, 2_400);
    expect(model.mode()).toBe("sliding");
  });

  test("plans as leaky before it counts as leaky", () => {
    const { model, rule, call, answer } = modelOf();
    call(0);
    answer(0, 200, 4, 800);
    expect(model.mode()).toBe("unknown");
    expect(rule.windowMs).toBe(4_000);
    expect(model.planned().gap(200)).toBeLessThan(600);
    expect(model.counter().gap(200)).toBeGreaterThan(700);
  });
});

describe("counter kind", () => {
  function read(sentAt: number, resetMs: number, remaining: number, inFlight = 0): Reading {
    const answeredAt = sentAt + 200;
    const [resetFrom, resetUntil] = [sentAt + resetMs, answeredAt + resetMs];
    return { kind: "edit", sentAt, answeredAt, resetMs, remaining, resetFrom, resetUntil, inFlight };
  }

  const first = toReference(read(0, 1_000, 4), 5);

  test("is a fixed window when the reset stands still", () => {
    expect(toKind(read(400, 600, 3), first, 1)).toBe("fixed");
  });

  test("is leaky when the reset moves on by a call", () => {
    expect(toKind(read(400, 1_600, 3), first, 1)).toBe("leaky");
    expect(toKind(read(600, 2_400, 2), first, 2)).toBe("leaky");
  });

  test("stays open when both or neither fit", () => {
    expect(toKind(read(400, 1_100, 3), first, 1)).toBeUndefined();
    const narrow = toReference({ ...read(0, 100, 4) }, 5_000);
    expect(toKind(read(50, 100, 3), narrow, 1)).toBeUndefined();
  });

  test("is not judged from answers that cannot be compared", () => {
    expect(toKind(read(400, 600, 3, 1), first, 1)).toBeUndefined();
    expect(toKind(read(1_000, 1_000, 3), first, 1)).toBeUndefined();
    expect(toKind(read(400, 600, 5), first, 1)).toBeUndefined();
  });
});
