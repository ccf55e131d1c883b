import { describe, expect, test } from "vitest";
import type { Demand, Growth } from "../../src/pacing/budget.ts";
import { type BankState, planGap } from "../../src/pacing/slack-plan.ts";

const YOUNG: Growth = { total: 100, rate: 240 };
const FRESH: BankState = { calls: 49, window: 60, countAt: () => 0, reserve: 2, minGap: 0.45 };

function demand(live: Growth[], starts: number[] = [], now = 100): Demand {
  return { now, live, active: Math.max(1, live.length), starts };
}

describe("slack plan", () => {
  test("edits each of a few young replies about every second from a fresh bank", () => {
    for (const count of [1, 2, 3, 5]) {
      const perReply = planGap(demand(Array.from({ length: count }, () => YOUNG)), FRESH) * count;
      expect(perReply).toBeGreaterThanOrEqual(0.45);
      expect(perReply).toBeLessThanOrEqual(1);
    }
  });

  test("slows down as the bank empties, down to ten seconds", () => {
    const gaps = [0, 20, 40, 49].map((spent) => planGap(demand([YOUNG]), { ...FRESH, countAt: () => spent }));
    expect(gaps).toEqual([...gaps].sort((a, b) => a - b));
    expect(gaps.at(-1)).toBe(10);
  });

  test("counts on the credits that return in time", () => {
    const returning = { ...FRESH, countAt: (at: number) => (at >= 102 ? 0 : 47) };
    expect(planGap(demand([YOUNG]), returning)).toBeLessThan(planGap(demand([YOUNG]), { ...FRESH, countAt: () => 47 }));
  });

  test("takes a reply beyond the usual length for a long one", () => {
    const long = { total: 20_000, rate: 240 };
    expect(planGap(demand([long]), FRESH)).toBeGreaterThan(planGap(demand([{ total: 2000, rate: 240 }]), FRESH));
  });

  test("keeps a busy workspace near the rate at which calls return", () => {
    const starts = Array.from({ length: 10 }, (_, index) => 40 + index * 6);
    const base = 60 / (49 - (60 * 9) / 52.5);
    const rich = planGap(demand([YOUNG], starts), FRESH);
    const poor = planGap(demand([YOUNG], starts), { ...FRESH, countAt: () => 49 });
    expect(rich).toBeCloseTo(0.75 * base);
    expect(poor).toBeCloseTo(1.5 * base);
  });

  test("does not take a burst of starts for a rate", () => {
    expect(planGap(demand([YOUNG], [95, 96, 97, 98, 99]), FRESH)).toBe(planGap(demand([YOUNG]), FRESH));
  });

  test("has an answer when nobody writes", () => {
    expect(planGap(demand([]), FRESH)).toBeGreaterThanOrEqual(0.45);
  });
});
