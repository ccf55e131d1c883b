import { describe, expect, test } from "vitest";
import type { Demand, Growth } from "../../src/pacing/budget.ts";
import { type BankState, countComingFinals, planGap } from "../../src/pacing/slack-plan.ts";

const YOUNG: Growth = { total: 100, rate: 240, firstText: 99.6, edits: 0 };
const FRESH: BankState = { calls: 49, window: 60, counted: 60.5, countAt: () => 0, reserve: 2, minGap: 0.45 };

function demand(live: Growth[], starts: number[] = [], now = 100): Demand {
  return { now, live, active: Math.max(1, live.length), unfinished: live.length, starts };
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
    const long = { ...YOUNG, total: 20_000 };
    expect(planGap(demand([long]), FRESH)).toBeGreaterThan(planGap(demand([{ ...YOUNG, total: 2000 }]), FRESH));
  });

  test("keeps a busy workspace near the rate at which calls return", () => {
    const starts = Array.from({ length: 10 }, (_, index) => 40 + index * 6);
    const base = 60 / (49 - (60 * 9) / 52.5);
    // Its calls have come back, but for those that show how busy it was.
    const rich = planGap(demand([YOUNG], starts), { ...FRESH, countAt: (at) => (at > 100 ? 0 : 5) });
    const poor = planGap(demand([YOUNG], starts), { ...FRESH, countAt: (at) => (at > 150 ? 40 : 49) });
    expect(rich).toBeCloseTo(0.9 * base);
    expect(poor).toBeCloseTo(1.5 * base);
  });

  test("takes no earlier answer for a load that took next to no calls", () => {
    // The post of a short answer counts elsewhere; an edit and its final are left.
    const spent = { ...FRESH, countAt: (at: number) => (at > 140 ? 0 : 2) };
    for (const count of [1, 3, 5]) {
      const live = Array.from({ length: count }, () => YOUNG);
      const fresh = planGap(demand(live), spent);
      for (const ago of [2, 10, 60]) expect(planGap(demand(live, [100 - ago]), spent) / fresh).toBeLessThan(1.1);
    }
  });

  test("takes no reply's own beginning and calls for a load", () => {
    const own: Growth = { total: 400, rate: 240, firstText: 91, edits: 12 };
    const bank = { ...FRESH, countAt: (at: number) => (at > 140 ? 0 : 12) };
    expect(planGap(demand([own], [91]), bank)).toBe(planGap(demand([own]), bank));
  });

  test("spreads its calls over long lives once several replies have lasted", () => {
    const five = (firstText: number) => Array.from({ length: 5 }, (): Growth => ({ ...YOUNG, rate: 120, firstText }));
    expect(planGap(demand(five(92)), FRESH)).toBeGreaterThan(2 * planGap(demand(five(94)), FRESH));
  });

  test("spends no faster than calls return on a reply that may outlast them", () => {
    expect(planGap(demand([{ ...YOUNG, firstText: 89 }]), FRESH)).toBeCloseTo((0.9 * 60) / 49);
  });

  test("keeps calls for the finals of replies that the rate foretells, until calls return", () => {
    const starts = [40, 50, 60, 70, 80, 90];
    const bank = (back: number) => ({ ...FRESH, countAt: (at: number) => (at > back ? 0 : 45) });
    expect(countComingFinals(demand([], starts), bank(140))).toBeGreaterThan(4);
    expect(countComingFinals(demand([], starts), bank(101))).toBeLessThan(1);
    expect(countComingFinals(demand([]), bank(140))).toBe(0);
  });

  test("does not take a burst of starts for a rate", () => {
    expect(planGap(demand([YOUNG], [95, 96, 97, 98, 99]), FRESH)).toBe(planGap(demand([YOUNG]), FRESH));
  });

  test("has an answer when nobody writes", () => {
    expect(planGap(demand([]), FRESH)).toBeGreaterThanOrEqual(0.45);
  });
});
