import { describe, expect, test } from "vitest";
import type { Rule } from "../../src/pacing/counter.ts";
import { createLoggedCounter } from "../../src/pacing/logged-counter.ts";
import { createOwnCalls } from "../../src/pacing/own-calls.ts";

function counterWith(times: number[]) {
  const rule: Rule = { n: 5, w: 5, rtt: 0, calls: createOwnCalls() };
  const counter = createLoggedCounter(rule);
  const call = (at: number) => {
    rule.calls.add({ at, kind: "edit", answeredAt: at });
    counter.sent(at);
  };
  for (const at of times) call(at);
  return { counter, call };
}

const answer = { kind: "edit", s: 0, a: 0.2, reset: 5, remaining: 4, lo: 5, hi: 5.2, over: 0 } as const;

describe("logged counter", () => {
  test("counts the own calls of the last window and a margin", () => {
    const { counter } = counterWith([0, 1, 2, 3, 4]);
    expect([4, 5.1, 5.2, 6.2].map(counter.credit)).toEqual([0, 0, 1, 2]);
  });

  test("believes a header that says less, until its window ends", () => {
    const { counter, call } = counterWith([0]);
    counter.heard({ ...answer, remaining: 2, over: 1 });
    expect(counter.credit(1)).toBe(1);
    call(1);
    expect(counter.credit(1)).toBe(0);
    expect(counter.credit(5.2)).toBe(4);
  });

  test("is empty of a call when the window that held nothing else ends", () => {
    const { counter } = counterWith([0]);
    counter.heard({ ...answer, reset: 1, hi: 1.2, lo: 1 });
    expect([1, 1.3].map(counter.credit)).toEqual([4, 5]);
  });

  test("spreads what is free evenly to the return of the oldest call", () => {
    expect(counterWith([]).counter.gap(0)).toBe(0.35);
    expect(counterWith([0]).counter.gap(0)).toBeCloseTo(5.12 / 5);
    expect(counterWith([0, 1, 2, 3, 4]).counter.gap(4)).toBeCloseTo(1.12);
  });
});
