import { describe, expect, test } from "vitest";
import {
  type BankState,
  countComingFinals,
  createRoomTurns,
  createSlackBudget,
  planGap,
} from "../../../../adapters/slack/write/pace.ts";
import { toFigures } from "../../../../lab/pacing/measure.ts";
import { slackPlatform, slidingCounter } from "../../../../lab/pacing/platform.ts";
import { afterQuestion, anything, mix, several, workday } from "../../../../lab/pacing/scenarios.ts";
import { NO_WRONGS, SLACK_TRIP_MS, toWrongs, trySlack } from "../../../../lab/pacing/trials.ts";
import type { Call, Demand, Growth } from "../../../../src/pacing/budget.ts";

describe("the budget of calls to Slack", () => {
  const EDIT: Call = { kind: "edit", room: "general" };
  const POST: Call = { kind: "post", room: "general" };
  const FINAL: Call = { kind: "final", room: "general" };

  const YOUNG: Growth = { total: 100, rate: 0.24, firstText: -400, edits: 0 };

  function demand(now: number, starts: number[] = []): Demand {
    return { now, growing: [YOUNG], active: 1, unfinished: 1, starts };
  }

  test("the budget counts a workspace's edits and finals together, and posts by channel", () => {
    const budget = createSlackBudget("update");
    expect(budget.credit(EDIT, 0)).toBe(49);
    budget.sent(EDIT, 0);
    budget.sent(FINAL, 0);
    budget.sent(POST, 0);
    expect(budget.credit(EDIT, 1_000)).toBe(47);
    expect(budget.credit(POST, 1_000)).toBe(0);
    expect(budget.credit({ kind: "post", room: "random" }, 1_000)).toBe(1);
    budget.done(POST, { kind: "post", sentAt: 0, answer: { ok: true } }, 1_000);
    expect(budget.creditAt(POST, 1, 1_000)).toBe(1_500);
  });

  test("the budget has a limit per method for native streams", () => {
    const budget = createSlackBudget("append");
    expect([POST, EDIT, FINAL].map((call) => budget.credit(call, 0))).toEqual([19, 98, 19]);
    budget.sent(FINAL, 0);
    expect([EDIT, FINAL].map((call) => budget.credit(call, 0))).toEqual([98, 18]);
    expect(budget.reserve(demand(0))).toBe(0);
  });

  test("the budget starts no stream that it could not stop", () => {
    const budget = createSlackBudget("append");
    for (let second = 0; second < 10; second++) budget.sent(FINAL, second * 1_000);
    for (let second = 10; second < 14; second++) {
      budget.sent(POST, second * 1_000);
      budget.done(POST, { kind: "post", sentAt: second * 1_000, answer: { ok: true } }, second * 1_000);
    }
    // Nine stops are left, and the open streams need four of them.
    expect(budget.credit(POST, 14_000)).toBe(5);
    expect(budget.creditAt(POST, 6, 14_000)).toBe(60_500);
    budget.sent(FINAL, 14_000);
    budget.done(FINAL, { kind: "final", sentAt: 14_000, answer: { ok: true } }, 14_000);
    expect(budget.credit(POST, 14_000)).toBe(5);
    // After five minutes, Slack has ended the streams that the bot did not stop.
    expect(budget.credit(POST, 314_000)).toBe(19);
  });

  test("the budget reserves more calls for finals if there are more replies", () => {
    const budget = createSlackBudget("update");
    expect(budget.reserve(demand(0))).toBe(2);
    expect(budget.reserve({ ...demand(60_000), active: 3, unfinished: 3, starts: [20_000, 30_000] })).toBe(4);
    expect(budget.reserve({ ...demand(60_000), active: 40, unfinished: 40 })).toBe(24);
  });

  test("the budget reserves a call for each ended reply that waits for its final", () => {
    const budget = createSlackBudget("update");
    expect(budget.reserve({ ...demand(0), unfinished: 6 })).toBe(6);
  });

  test("the budget counts a call under the method that was finally used", () => {
    const budget = createSlackBudget("update");
    budget.sent(EDIT, 0);
    budget.done(EDIT, { kind: "post", sentAt: 0, answer: { ok: true } }, 1_000);
    expect(budget.credit(POST, 1_000)).toBe(0);
    expect(budget.credit(POST, 2_000)).toBe(1);
    budget.sent(POST, 2_000);
    budget.done(POST, { kind: "edit", sentAt: 2_000, answer: { ok: false, retryAfterMs: 5_000 } }, 3_000);
    expect(budget.credit(EDIT, 7_000)).toBe(0);
    expect(budget.creditAt(POST, 1, 3_000)).toBe(3_500);
  });

  test("the budget keeps a plan until something happens", () => {
    const budget = createSlackBudget("update");
    const first = budget.gap(demand(0));
    expect(budget.gap({ ...demand(50), growing: [{ ...YOUNG, total: 90_000 }] })).toBe(first);
    expect(budget.gap({ ...demand(200), growing: [{ ...YOUNG, total: 90_000 }] })).toBeGreaterThan(first);
    for (let call = 0; call < 40; call++) budget.sent(EDIT, 200);
    expect(budget.gap(demand(210))).toBeGreaterThan(first);
    expect(budget.keepUntil()).toBe(300_200);
  });

  test("the budget slows down after Slack refused an allowed call, and still edits", () => {
    const budget = createSlackBudget("update");
    budget.sent(EDIT, 0);
    budget.done(EDIT, { kind: "edit", sentAt: 0, answer: { ok: false, retryAfterMs: 5_000 } }, 1_000);
    expect(budget.gap(demand(10_000))).toBeCloseTo((1.15 * 60_000) / 49);
    expect(budget.isRich(10_000, 100)).toBe(false);
    expect(budget.creditAt(EDIT, 1 + budget.reserve(demand(10_000)), 1_000)).toBeLessThan(10_000);
    expect(budget.keepUntil()).toBe(601_000);
  });
});

describe("the budget of calls against Slack's documented limits", () => {
  const scenarios = {
    "replies of any kind": anything,
    "five a minute": mix(5),
    "twenty a minute": mix(20),
    "long replies at once": several(8, 1500, 30, 300),
    "a fresh workspace that turns busy": workday(15),
  };
  for (const method of ["update", "append"] as const) {
    for (const [name, scenario] of Object.entries(scenarios)) {
      test(`Slack refuses no call of the budget: ${name}, ${method}`, () => {
        for (const [index, tripMs] of [80, 250, 600].entries()) {
          const result = trySlack({ scenario, seed: 10 + index, tripMs, options: {} }, method);
          expect(toWrongs(result)).toEqual(NO_WRONGS);
        }
      });
    }
  }

  test("the budget delays no final of long replies that follow another question", {
    timeout: 60_000,
  }, () => {
    // The calls for a question 8 or 10 s ago become available again just after the answers end.
    for (const agoMs of [2_000, 8_000, 10_000]) {
      const scenario = afterQuestion(agoMs, several(5, 1500, 30, 0));
      for (let seed = 1; seed <= 6; seed++) {
        const { outcomes } = trySlack({ scenario, seed, tripMs: SLACK_TRIP_MS }, "update");
        expect(toFigures(outcomes).worstFinal).toBeLessThan(2);
      }
    }
  });

  test("the budget delays no final for long in the first busy minute of a workspace", () => {
    // Both use most of the minute's calls for edits of their first answers.
    for (const [perMinute, longestSeconds] of [
      [15, 2],
      [20, 10],
    ] as const) {
      const result = trySlack({ scenario: mix(perMinute), seed: 3, tripMs: SLACK_TRIP_MS }, "update");
      expect(toWrongs(result)).toEqual(NO_WRONGS);
      expect(toFigures(result.outcomes).worstFinal).toBeLessThan(longestSeconds);
    }
  });

  test("Slack refuses no call of the budget in one channel with server errors", () => {
    for (let seed = 1; seed <= 4; seed++) {
      const options = { errorShare: 0.05, room: "general" };
      const result = trySlack(
        { scenario: mix(10), seed, tripMs: seed % 2 === 0 ? 600 : SLACK_TRIP_MS, options },
        "update",
      );
      expect(toWrongs(result)).toEqual(NO_WRONGS);
    }
  });

  test("the budget respects a stricter limit than documented until its wait is over, and delivers every final", () => {
    for (const [calls, windowMs] of [
      [10, 60_000],
      [20, 60_000],
      [3, 10_000],
    ] as const) {
      const edits = slidingCounter(calls, windowMs, true);
      const honest = slackPlatform("update");
      const platform = (kind: "post" | "edit" | "final", room: string) =>
        kind === "post" ? honest(kind, room, false) : edits;
      const trial = { scenario: several(3, 400, 60, 1_000), seed: 1, tripMs: SLACK_TRIP_MS, options: { platform } };
      const { refused, ...wrongs } = toWrongs(trySlack(trial, "update"));
      expect(refused).toBeGreaterThan(0);
      expect(wrongs).toEqual({ overlaps: 0, regressions: 0, impatience: 0, unfinished: 0 });
    }
  });
});

describe("the plan of edits on Slack", () => {
  const YOUNG: Growth = { total: 100, rate: 0.24, firstText: 99_600, edits: 0 };
  const FRESH: BankState = {
    calls: 49,
    windowMs: 60_000,
    countedMs: 60_500,
    countAt: () => 0,
    reserve: 2,
    minGapMs: 450,
  };

  function demand(growing: Growth[], starts: number[] = [], now = 100_000): Demand {
    return { now, growing, active: Math.max(1, growing.length), unfinished: growing.length, starts };
  }

  test("the plan edits each of a few young replies about every second while all calls are unspent", () => {
    for (const count of [1, 2, 3, 5]) {
      const perReply = planGap(demand(Array.from({ length: count }, () => YOUNG)), FRESH) * count;
      expect(perReply).toBeGreaterThanOrEqual(450);
      expect(perReply).toBeLessThanOrEqual(1_000);
    }
  });

  test("the plan slows down as fewer calls are left, down to ten seconds", () => {
    const gaps = [0, 20, 40, 49].map((spent) => planGap(demand([YOUNG]), { ...FRESH, countAt: () => spent }));
    expect(gaps).toEqual([...gaps].sort((a, b) => a - b));
    expect(gaps.at(-1)).toBe(10_000);
  });

  test("the plan counts the calls that become free in time", () => {
    const returning = { ...FRESH, countAt: (at: number) => (at >= 102_000 ? 0 : 47) };
    expect(planGap(demand([YOUNG]), returning)).toBeLessThan(planGap(demand([YOUNG]), { ...FRESH, countAt: () => 47 }));
  });

  test("the plan treats a reply beyond the usual length as a long one", () => {
    const long = { ...YOUNG, total: 20_000 };
    expect(planGap(demand([long]), FRESH)).toBeGreaterThan(planGap(demand([{ ...YOUNG, total: 2000 }]), FRESH));
  });

  test("the plan keeps a busy workspace near the rate at which calls become free", () => {
    const starts = Array.from({ length: 10 }, (_, index) => 40_000 + index * 6_000);
    const base = 60_000 / (49 - (60 * 9) / 52.5);
    // The calls have become available again, except those that show how busy it was.
    const rich = planGap(demand([YOUNG], starts), { ...FRESH, countAt: (at) => (at > 100_000 ? 0 : 5) });
    const poor = planGap(demand([YOUNG], starts), { ...FRESH, countAt: (at) => (at > 150_000 ? 40 : 49) });
    expect(rich).toBeCloseTo(0.9 * base);
    expect(poor).toBeCloseTo(1.5 * base);
  });

  test("the plan ignores an earlier answer that used almost no calls", () => {
    // The post of a short answer uses another limit, so an edit and its final are left.
    const spent = { ...FRESH, countAt: (at: number) => (at > 140_000 ? 0 : 2) };
    for (const count of [1, 3, 5]) {
      const growing = Array.from({ length: count }, () => YOUNG);
      const fresh = planGap(demand(growing), spent);
      for (const agoMs of [2_000, 10_000, 60_000])
        expect(planGap(demand(growing, [100_000 - agoMs]), spent) / fresh).toBeLessThan(1.1);
    }
  });

  test("the plan does not count a reply's own start and calls as load", () => {
    const own: Growth = { total: 400, rate: 0.24, firstText: 91_000, edits: 12 };
    const bank = { ...FRESH, countAt: (at: number) => (at > 140_000 ? 0 : 12) };
    expect(planGap(demand([own], [91_000]), bank)).toBe(planGap(demand([own]), bank));
  });

  test("the plan spreads calls over long lifetimes once several replies have lasted long", () => {
    const five = (firstText: number) => Array.from({ length: 5 }, (): Growth => ({ ...YOUNG, rate: 0.12, firstText }));
    expect(planGap(demand(five(92_000)), FRESH)).toBeGreaterThan(2 * planGap(demand(five(94_000)), FRESH));
  });

  test("the plan spends calls on a reply that may outlast them no faster than calls become free", () => {
    expect(planGap(demand([{ ...YOUNG, firstText: 89_000 }]), FRESH)).toBeCloseTo((0.9 * 60_000) / 49);
  });

  test("the plan reserves calls for the finals of predicted replies until calls become free", () => {
    const starts = [40_000, 50_000, 60_000, 70_000, 80_000, 90_000];
    const bank = (back: number) => ({ ...FRESH, countAt: (at: number) => (at > back ? 0 : 45) });
    expect(countComingFinals(demand([], starts), bank(140_000))).toBeGreaterThan(4);
    expect(countComingFinals(demand([], starts), bank(101_000))).toBeLessThan(1);
    expect(countComingFinals(demand([]), bank(140_000))).toBe(0);
  });

  test("the plan does not mistake a burst of starts for a rate", () => {
    expect(planGap(demand([YOUNG], [95_000, 96_000, 97_000, 98_000, 99_000]), FRESH)).toBe(
      planGap(demand([YOUNG]), FRESH),
    );
  });

  test("the plan waits a fixed gap if no one writes", () => {
    expect(planGap(demand([]), FRESH)).toBeGreaterThanOrEqual(450);
  });
});

describe("the turns to post in a channel", () => {
  test("turns in a channel allow one post at a time, and the next after a pause from the latest possible arrival", () => {
    const turns = createRoomTurns(1_000);
    expect(turns.credit(0)).toBe(1);
    turns.sent(3_500);
    expect(turns.credit(5_000)).toBe(0);
    expect(turns.creditAt(1, 5_000)).toBe(Infinity);
    expect(turns.keepUntil()).toBe(Infinity);
    turns.done({ ok: true }, 5_000);
    expect([5_000, 5_200, 5_300].map(turns.credit)).toEqual([0, 0, 1]);
    expect(turns.creditAt(1, 5_000)).toBe(5_250);
    expect(turns.creditAt(2, 5_000)).toBe(Infinity);
    // The delay may have been on the way to Slack, so we can only assume that the call arrived half the fastest round
    // trip before the response.
    turns.sent(10_000);
    turns.done({ ok: true }, 13_000);
    expect(turns.creditAt(1, 13_000)).toBe(13_250);
  });

  test("turns in a channel also pause after a failure, and as long as Slack's refusal asks", () => {
    const turns = createRoomTurns(1_000);
    turns.sent(0);
    turns.done({ ok: false }, 1_000);
    expect(turns.creditAt(1, 1_000)).toBe(2_000);
    turns.sent(2_000);
    turns.done({ ok: false, retryAfterMs: 10_000 }, 3_000);
    expect(turns.creditAt(1, 3_000)).toBe(13_000);
    expect(turns.keepUntil()).toBe(13_000);
  });
});
