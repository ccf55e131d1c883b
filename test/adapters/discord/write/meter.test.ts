import { describe, expect, test } from "vitest";
import { createOwnCalls, type Reading, type Rule } from "../../../../adapters/discord/write/counters.ts";
import {
  createCounterModel,
  createMeter,
  toKind,
  toReference,
  UNLEARNT,
} from "../../../../adapters/discord/write/meter.ts";
import type { PlatformCounter } from "../../../../lab/pacing/platform.ts";
import { fixedCounter, leakyCounter, slidingCounter } from "../../../../lab/pacing/platform.ts";

describe("the meter of one channel's calls", () => {
  /** Makes a call at each of these times, one after another. The counter is half a round trip away. */
  function call(meter: ReturnType<typeof createMeter>, counter: PlatformCounter, times: number[], tripMs = 200): void {
    for (const at of times) {
      meter.sent("edit", at);
      const verdict = counter.take(at + tripMs / 2);
      const answer = verdict.ok ? ({ ok: true, budget: verdict.headers } as const) : verdict;
      meter.done("edit", at, answer, at + tripMs);
    }
  }

  test("a meter learns a fixed window from two responses", () => {
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

  test("a meter learns a leaky counter from two responses", () => {
    const meter = createMeter(UNLEARNT);
    call(meter, leakyCounter(5, 5_000), [0, 300]);
    expect(meter.learnt()).toEqual({ mode: "leaky", limit: 5, windowMs: 5_000 });
    // The reset is wrong by at most a round trip, so a call counts as returned one round trip late.
    expect([500, 1_300, 2_300].map(meter.credit)).toEqual([3, 4, 5]);
  });

  test("a meter permanently counts its own calls if no model fits, and other meters do not learn from that", () => {
    const meter = createMeter(UNLEARNT);
    call(meter, slidingCounter(5, 5_000), [0, 1_000, 2_000, 5_400]);
    expect(meter.learnt().mode).toBe("unknown");
    call(meter, slidingCounter(5, 5_000), [6_000, 6_400]);
    expect(meter.credit(6_600)).toBe(1);
  });

  test("a meter takes the limit from the header and keeps the spacing", () => {
    const meter = createMeter(UNLEARNT);
    call(meter, fixedCounter(10, 10_000), [0]);
    expect(meter.learnt()).toEqual({ mode: "unknown", limit: 10, windowMs: 10_000 });
    expect(meter.credit(200)).toBe(9);
  });

  test("a meter plans a counter with a reset of one second as one call per second", () => {
    const meter = createMeter(UNLEARNT);
    call(meter, leakyCounter(5, 5_000), [0]);
    expect(meter.gap(200)).toBeLessThan(500);
    const other = createMeter(UNLEARNT);
    call(other, fixedCounter(5, 5_000), [0]);
    expect(other.gap(200)).toBeGreaterThan(900);
  });

  test("a meter starts no call before a refusal's wait is over", () => {
    const meter = createMeter({ mode: "leaky", limit: 5, windowMs: 5_000 });
    meter.sent("edit", 0);
    meter.done("edit", 0, { ok: false, retryAfterMs: 7_000 }, 200);
    expect([1_000, 7_100].map(meter.credit)).toEqual([0, 0]);
    expect(meter.creditAt(1, 200)).toBeCloseTo(7_200);
    expect(meter.keepUntil()).toBe(60_000);
  });

  test("a meter corrects a model that it took over from another channel", () => {
    const wrong = createMeter({ mode: "leaky", limit: 5, windowMs: 1_000 });
    call(wrong, fixedCounter(5, 5_000), [0, 300]);
    expect(wrong.learnt()).toEqual({ mode: "fixed", limit: 5, windowMs: 5_000 });
    const other = createMeter({ mode: "fixed", limit: 5, windowMs: 5_000 });
    call(other, leakyCounter(5, 5_000), [0, 300]);
    expect(other.learnt()).toEqual({ mode: "leaky", limit: 5, windowMs: 5_000 });
  });

  test("a meter gives up the leaky model if the counter holds more calls than that model could", () => {
    const meter = createMeter({ mode: "leaky", limit: 10, windowMs: 100_000 });
    meter.sent("edit", 0);
    meter.done("edit", 0, { ok: true, budget: { limit: 10, remaining: 5, resetAfterMs: 9_000 } }, 200);
    expect(meter.learnt().mode).toBe("unknown");
    expect(meter.credit(200)).toBe(5);
  });

  test("a meter returns to counting if it cannot account for the call that opened a window", () => {
    const meter = createMeter(UNLEARNT);
    const counter = fixedCounter(5, 5_000);
    call(meter, counter, [0, 300]);
    meter.sent("edit", 5_200);
    meter.done("edit", 5_200, { ok: false }, 5_400);
    expect(meter.learnt().mode).toBe("unknown");
    expect(meter.credit(5_400)).toBe(3);
  });

  test("a meter without headers makes five calls in five seconds", () => {
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

describe("the model of a counter", () => {
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
        model.observe({ kind: "post", sentAt, answeredAt, resetMs, remaining, resetFrom, resetUntil, inFlight }, 5);
      },
      fail(sentAt: number, answeredAt: number) {
        rule.calls.answered(sentAt, "post", answeredAt);
        model.observeSilence(sentAt);
      },
    };
  }

  test("a counter model knows how many calls are left once all concurrent calls have their responses", () => {
    const { model, call, answer } = modelOf();
    for (const at of [0, 10, 20]) call(at);
    answer(0, 200, 4, 4_900);
    answer(10, 210, 3, 4_900);
    expect(model.counter().credit(210)).toBe(1);
    answer(20, 220, 2, 4_900);
    expect(model.counter().credit(220)).toBe(2);
  });

  test("a counter model stays uncertain by one call for each concurrent call whose response had no headers", () => {
    const { model, call, answer, fail } = modelOf();
    for (const at of [0, 10, 20]) call(at);
    // Another user's call is also in the counter, so the bot's own log is not the limit.
    answer(0, 200, 3, 4_900);
    answer(10, 210, 2, 4_900);
    fail(20, 220);
    expect(model.counter().credit(220)).toBe(1);
    expect(model.mode()).toBe("unknown");
  });

  test("a counter model learns the kind from concurrent calls too", () => {
    const { model, call, answer } = modelOf();
    for (const at of [0, 10]) call(at);
    answer(0, 200, 4, 4_900);
    answer(10, 210, 3, 4_900);
    call(1_000);
    answer(1_000, 1_200, 2, 3_900);
    expect(model.mode()).toBe("fixed");
    expect(model.counter().credit(1_200)).toBe(2);
  });

  test("a counter model does not compare responses across a call that may or may not have counted", () => {
    const { model, call, answer, fail } = modelOf();
    call(0);
    answer(0, 200, 4, 4_900);
    call(1_000);
    fail(1_000, 1_200);
    call(2_000);
    answer(2_000, 2_200, 3, 2_900);
    expect(model.mode()).toBe("unknown");
  });

  test("a counter model permanently gives up a fixed window that starts with less than its limit", () => {
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

  test("a counter model makes plans for a leaky counter before it is certain that the counter is leaky", () => {
    const { model, rule, call, answer } = modelOf();
    call(0);
    answer(0, 200, 4, 800);
    expect(model.mode()).toBe("unknown");
    expect(rule.windowMs).toBe(4_000);
    expect(model.planned().gap(200)).toBeLessThan(600);
    expect(model.counter().gap(200)).toBeGreaterThan(700);
  });
});

describe("the kind of a counter", () => {
  function read(sentAt: number, resetMs: number, remaining: number, inFlight = 0): Reading {
    const answeredAt = sentAt + 200;
    const [resetFrom, resetUntil] = [sentAt + resetMs, answeredAt + resetMs];
    return { kind: "edit", sentAt, answeredAt, resetMs, remaining, resetFrom, resetUntil, inFlight };
  }

  const first = toReference(read(0, 1_000, 4), 5);

  test("a counter is a fixed window if the reset stays the same", () => {
    expect(toKind(read(400, 600, 3), first, 1)).toBe("fixed");
  });

  test("a counter is leaky if the reset moves by one call", () => {
    expect(toKind(read(400, 1_600, 3), first, 1)).toBe("leaky");
    expect(toKind(read(600, 2_400, 2), first, 2)).toBe("leaky");
  });

  test("the counter kind stays undecided if both kinds or neither fit", () => {
    expect(toKind(read(400, 1_100, 3), first, 1)).toBeUndefined();
    const narrow = toReference({ ...read(0, 100, 4) }, 5_000);
    expect(toKind(read(50, 100, 3), narrow, 1)).toBeUndefined();
  });

  test("the meter does not derive the counter kind from responses that it cannot compare", () => {
    expect(toKind(read(400, 600, 3, 1), first, 1)).toBeUndefined();
    expect(toKind(read(1_000, 1_000, 3), first, 1)).toBeUndefined();
    expect(toKind(read(400, 600, 5), first, 1)).toBeUndefined();
  });
});
