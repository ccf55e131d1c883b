import { describe, expect, test } from "vitest";
import type { Rule } from "../../src/pacing/counter.ts";
import { createCounterModel } from "../../src/pacing/counter-model.ts";
import { createOwnCalls } from "../../src/pacing/own-calls.ts";

function modelOf() {
  const rule: Rule = { n: 5, w: 5, rtt: 0.2, calls: createOwnCalls() };
  const model = createCounterModel(rule, "unknown");
  return {
    model,
    rule,
    call(at: number) {
      rule.calls.add({ at, kind: "post", answeredAt: Infinity });
      model.sent(at);
    },
    answer(s: number, a: number, remaining: number, reset: number) {
      rule.calls.answered(s, "post", a);
      const over = rule.calls.overlapping(s, a);
      model.heard({ kind: "post", s, a, reset, remaining, lo: s + reset, hi: a + reset, over }, 5);
    },
    fail(s: number, a: number) {
      rule.calls.answered(s, "post", a);
      model.unheard(s);
    },
  };
}

describe("counter model", () => {
  test("knows what is left when all calls that were made together are answered", () => {
    const { model, call, answer } = modelOf();
    for (const at of [0, 0.01, 0.02]) call(at);
    answer(0, 0.2, 4, 4.9);
    answer(0.01, 0.21, 3, 4.9);
    expect(model.counter().credit(0.21)).toBe(1);
    answer(0.02, 0.22, 2, 4.9);
    expect(model.counter().credit(0.22)).toBe(2);
  });

  test("stays in doubt by each call among them that was answered without headers", () => {
    const { model, call, answer, fail } = modelOf();
    for (const at of [0, 0.01, 0.02]) call(at);
    // Somebody else's call is in the counter as well, so that the own log is not what limits.
    answer(0, 0.2, 3, 4.9);
    answer(0.01, 0.21, 2, 4.9);
    fail(0.02, 0.22);
    expect(model.counter().credit(0.22)).toBe(1);
    expect(model.mode()).toBe("unknown");
  });

  test("learns the kind also from calls that were made together", () => {
    const { model, call, answer } = modelOf();
    for (const at of [0, 0.01]) call(at);
    answer(0, 0.2, 4, 4.9);
    answer(0.01, 0.21, 3, 4.9);
    call(1);
    answer(1, 1.2, 2, 3.9);
    expect(model.mode()).toBe("fixed");
    expect(model.counter().credit(1.2)).toBe(2);
  });

  test("does not compare answers across a call that may or may not have counted", () => {
    const { model, call, answer, fail } = modelOf();
    call(0);
    answer(0, 0.2, 4, 4.9);
    call(1);
    fail(1, 1.2);
    call(2);
    answer(2, 2.2, 3, 2.9);
    expect(model.mode()).toBe("unknown");
  });

  test("gives up a fixed window that begins with less than it should, for good", () => {
    const { model, call, answer } = modelOf();
    call(0);
    answer(0, 0.2, 4, 4.9);
    call(3);
    answer(3, 3.2, 3, 1.9);
    expect(model.mode()).toBe("fixed");
    call(5.2);
    answer(5.2, 5.4, 3, 2.7);
    expect(model.mode()).toBe("sliding");
    call(5.5);
    answer(5.5, 5.7, 2, 2.4);
    expect(model.mode()).toBe("sliding");
  });

  test("plans as leaky before it counts as leaky", () => {
    const { model, rule, call, answer } = modelOf();
    call(0);
    answer(0, 0.2, 4, 0.8);
    expect(model.mode()).toBe("unknown");
    expect(rule.w).toBe(4);
    expect(model.planned().gap(0.2)).toBeLessThan(0.6);
    expect(model.counter().gap(0.2)).toBeGreaterThan(0.7);
  });
});
