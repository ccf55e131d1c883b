import { describe, expect, test } from "vitest";
import type { Rule } from "../../src/pacing/counter.ts";
import { createFixedCounter } from "../../src/pacing/fixed-counter.ts";
import { createOwnCalls } from "../../src/pacing/own-calls.ts";

/** A counter of 5 per 5 s with its calls, whose windows are anchored where the test says. */
function fixed() {
  const rule: Rule = { n: 5, w: 5, rtt: 0.2, calls: createOwnCalls() };
  const counter = createFixedCounter(rule);

  function send(at: number): void {
    rule.calls.add({ at, kind: "edit", answeredAt: Infinity });
    counter.sent(at);
  }

  function answer(s: number, remaining: number, reset: number): void {
    const a = s + 0.2;
    rule.calls.answered(s, "edit", a);
    const over = rule.calls.overlapping(s, a);
    counter.heard({ kind: "edit", s, a, reset, remaining, lo: s + reset, hi: a + reset, over });
  }

  /** A call and its answer. */
  function call(at: number, remaining: number, reset: number): void {
    send(at);
    answer(at, remaining, reset);
  }

  return { counter, send, answer, call };
}

describe("fixed counter", () => {
  test("opens a window with one call and waits for its answer", () => {
    const { counter, send, answer } = fixed();
    expect(counter.credit(0)).toBe(1);
    send(0);
    expect(counter.isOpening(0)).toBe(true);
    expect(counter.credit(0.1)).toBe(0);
    answer(0, 4, 4.9);
    expect(counter.isOpening(0)).toBe(false);
    expect([0.2, 5, 5.2].map(counter.credit)).toEqual([4, 4, 1]);
  });

  test("opens with all its calls once a window was seen to begin anew", () => {
    const { counter, call } = fixed();
    call(0, 4, 4.9);
    call(3, 3, 1.9);
    call(5.2, 4, 4.9);
    expect(counter.credit(5.4)).toBe(4);
    expect(counter.credit(10.4)).toBe(5);
  });

  test("keeps its window when the wait of a refusal ends inside it: another limit was met", () => {
    const { counter, call, send } = fixed();
    call(0, 4, 4.9);
    for (const [at, remaining] of [
      [1, 3],
      [2, 2],
    ] as const) {
      call(at, remaining, 4.9 - at);
    }
    send(3);
    counter.refused(4);
    expect(counter.credit(4)).toBe(1);
    send(4);
    expect(counter.credit(4.5)).toBe(0);
    expect(counter.credit(5.2)).toBe(1);
  });

  test("is refuted by a window that begins with less", () => {
    const { counter, call } = fixed();
    call(0, 4, 4.9);
    call(3, 3, 1.9);
    call(5.2, 3, 2.8);
    expect(counter.isRefuted()).toBe(true);
  });

  test("takes a window that began earlier than thought as it is", () => {
    const { counter, call } = fixed();
    call(0, 4, 4.9);
    call(4.95, 4, 4.9);
    expect([5.2, 10].map(counter.credit)).toEqual([4, 4]);
  });

  test("never raises what is left inside a window, and ignores answers about an earlier one", () => {
    const { counter, call, answer } = fixed();
    call(0, 4, 4.9);
    call(1, 1, 3.9);
    expect(counter.credit(1.2)).toBe(1);
    call(2, 3, 2.9);
    expect(counter.credit(2.2)).toBe(0);
    answer(-1, 4, 9);
    expect(counter.credit(2.2)).toBe(0);
  });

  test("has one unproven call when a refusal is over", () => {
    const { counter } = fixed();
    counter.adopt({ winStart: 0, resetAt: 5, used: 1 });
    expect(counter.credit(1)).toBe(4);
    counter.refused(6);
    expect([1, 6].map(counter.credit)).toEqual([0, 1]);
  });

  test("spreads what is left evenly to the end of the window", () => {
    const { counter, call } = fixed();
    expect(counter.gap(0)).toBe(0.35);
    call(0, 4, 4.9);
    expect(counter.gap(0.2)).toBeCloseTo(5.1 / 5);
    expect(counter.turns()[0]).toBeCloseTo(5.1);
  });
});
