import { describe, expect, test } from "vitest";
import type { Rule } from "../../src/pacing/counter.ts";
import { createLeakyCounter } from "../../src/pacing/leaky-counter.ts";
import { createOwnCalls } from "../../src/pacing/own-calls.ts";

const rule = (): Rule => ({ n: 5, w: 5, rtt: 0, calls: createOwnCalls() });
const answer = { kind: "edit", s: 0, a: 0.2, reset: 2, remaining: 3, lo: 2, hi: 2.2, over: 0 } as const;

describe("leaky counter", () => {
  test("fills with each call and drains one per spacing", () => {
    const counter = createLeakyCounter(rule());
    expect(counter.credit(0)).toBe(5);
    for (let call = 0; call < 5; call++) counter.sent(0);
    expect([0, 0.5, 1, 2.5, 5].map(counter.credit)).toEqual([0, 0, 1, 2, 5]);
    expect(counter.level(0.5)).toBeCloseTo(0.5);
    expect(counter.turns()).toContain(1);
  });

  test("believes the header, and counts what was in flight beside it", () => {
    const counter = createLeakyCounter(rule());
    counter.heard(answer);
    expect(counter.credit(0.2)).toBe(3);
    counter.heard({ ...answer, over: 2 });
    expect(counter.credit(0.2)).toBe(1);
  });

  test("has one call when a refusal is over", () => {
    const counter = createLeakyCounter(rule());
    counter.refused(10);
    expect([10, 11].map(counter.credit)).toEqual([1, 2]);
  });

  test("plans closer calls while it is well filled", () => {
    const counter = createLeakyCounter(rule());
    expect(counter.gap(0)).toBeCloseTo(1 / (1 + 3.5 / 2));
    for (let call = 0; call < 4; call++) counter.sent(0);
    expect(counter.gap(0)).toBe(1);
  });
});
