import { describe, expect, test } from "vitest";
import type { Call, Demand, Growth } from "../../src/pacing/budget.ts";
import { createSlackBudget } from "../../src/pacing/slack-budget.ts";
import { toFigures } from "../support/pacing/measure.ts";
import { slackPlatform, slidingCounter } from "../support/pacing/platform.ts";
import { afterQuestion, anything, mix, several, workday } from "../support/pacing/scenarios.ts";
import { NO_WRONGS, SLACK_TRIP, toWrongs, trySlack } from "../support/pacing/trials.ts";

const EDIT: Call = { kind: "edit", room: "general" };
const POST: Call = { kind: "post", room: "general" };
const FINAL: Call = { kind: "final", room: "general" };

const YOUNG: Growth = { total: 100, rate: 240, firstText: -0.4, edits: 0 };

function demand(now: number, starts: number[] = []): Demand {
  return { now, live: [YOUNG], active: 1, unfinished: 1, starts };
}

describe("slack budget", () => {
  test("counts edits and finals of a workspace together, posts by room", () => {
    const budget = createSlackBudget({ method: "update" });
    expect(budget.credit(EDIT, 0)).toBe(49);
    budget.sent(EDIT, 0);
    budget.sent(FINAL, 0);
    budget.sent(POST, 0);
    expect(budget.credit(EDIT, 1)).toBe(47);
    expect(budget.credit(POST, 1)).toBe(0);
    expect(budget.credit({ kind: "post", room: "random" }, 1)).toBe(1);
    budget.done(POST, "post", 0, { ok: true }, 1);
    expect(budget.creditAt(POST, 1, 1)).toBe(1.5);
  });

  test("has a budget per method for native streams", () => {
    const budget = createSlackBudget({ method: "append" });
    expect([POST, EDIT, FINAL].map((call) => budget.credit(call, 0))).toEqual([19, 98, 19]);
    budget.sent(FINAL, 0);
    expect([EDIT, FINAL].map((call) => budget.credit(call, 0))).toEqual([98, 18]);
    expect(budget.reserve(demand(0))).toBe(0);
  });

  test("begins no stream that it could not stop", () => {
    const budget = createSlackBudget({ method: "append" });
    for (let second = 0; second < 10; second++) budget.sent(FINAL, second);
    for (let second = 10; second < 14; second++) {
      budget.sent(POST, second);
      budget.done(POST, "post", second, { ok: true }, second);
    }
    // Nine stops are left, and the streams that have begun need four of them.
    expect(budget.credit(POST, 14)).toBe(5);
    expect(budget.creditAt(POST, 6, 14)).toBe(60.5);
    budget.sent(FINAL, 14);
    budget.done(FINAL, "final", 14, { ok: true }, 14);
    expect(budget.credit(POST, 14)).toBe(5);
    // After five minutes Slack has ended what nobody stopped.
    expect(budget.credit(POST, 314)).toBe(19);
  });

  test("takes its part when several processes share a workspace", () => {
    const budget = createSlackBudget({ method: "update", replicas: 3 });
    expect(budget.credit(EDIT, 0)).toBe(16);
    expect(budget.reserve({ ...demand(0), active: 9, unfinished: 9 })).toBe(8);
  });

  test("keeps more calls for finals the more replies there are", () => {
    const budget = createSlackBudget({ method: "update" });
    expect(budget.reserve(demand(0))).toBe(2);
    expect(budget.reserve({ ...demand(60), active: 3, unfinished: 3, starts: [20, 30] })).toBe(4);
    expect(budget.reserve({ ...demand(60), active: 40, unfinished: 40 })).toBe(24);
  });

  test("keeps a call for each reply that has ended and waits for its final", () => {
    const budget = createSlackBudget({ method: "update" });
    expect(budget.reserve({ ...demand(0), unfinished: 6 })).toBe(6);
  });

  test("counts a call as what it turned out to be", () => {
    const budget = createSlackBudget({ method: "update" });
    budget.sent(EDIT, 0);
    budget.done(EDIT, "post", 0, { ok: true }, 1);
    expect(budget.credit(POST, 1)).toBe(0);
    expect(budget.credit(POST, 2)).toBe(1);
    budget.sent(POST, 2);
    budget.done(POST, "edit", 2, { ok: false, retryAfter: 5 }, 3);
    expect(budget.credit(EDIT, 7)).toBe(0);
    expect(budget.creditAt(POST, 1, 3)).toBe(3.5);
  });

  test("makes a plan hold until something happens", () => {
    const budget = createSlackBudget({ method: "update" });
    const first = budget.gap(demand(0));
    expect(budget.gap({ ...demand(0.05), live: [{ ...YOUNG, total: 90_000 }] })).toBe(first);
    expect(budget.gap({ ...demand(0.2), live: [{ ...YOUNG, total: 90_000 }] })).toBeGreaterThan(first);
    for (let call = 0; call < 40; call++) budget.sent(EDIT, 0.2);
    expect(budget.gap(demand(0.21))).toBeGreaterThan(first);
    expect(budget.keepUntil()).toBe(300.2);
  });

  test("spends a limit that refused an allowed call more slowly, and still edits", () => {
    const budget = createSlackBudget({ method: "update" });
    budget.sent(EDIT, 0);
    budget.done(EDIT, "edit", 0, { ok: false, retryAfter: 5 }, 1);
    expect(budget.gap(demand(10))).toBeCloseTo((1.15 * 60) / 49);
    expect(budget.isRich(10, 0.1)).toBe(false);
    expect(budget.creditAt(EDIT, 1 + budget.reserve(demand(10)), 1)).toBeLessThan(10);
    expect(budget.keepUntil()).toBe(601);
  });
});

describe("slack budget against the documented limits", () => {
  const scenarios = {
    "replies of any kind": anything,
    "five a minute": mix(5),
    "twenty a minute": mix(20),
    "long replies at once": several(8, 1500, 30, 0.3),
    "a fresh workspace that turns busy": workday(15),
  };
  for (const method of ["update", "append"] as const) {
    for (const [name, scenario] of Object.entries(scenarios)) {
      test(`is never refused: ${name}, ${method}`, () => {
        for (const [trip, seed] of [0.08, 0.25, 0.6].entries()) {
          const result = trySlack({ scenario, seed: 10 + trip, trip: seed, options: {} }, method);
          expect(toWrongs(result)).toEqual(NO_WRONGS);
        }
      });
    }
  }

  test("lets no final of several long replies wait that were asked for after another question", {
    timeout: 60_000,
  }, () => {
    const scenario = afterQuestion(2, several(5, 1500, 30, 0));
    for (let seed = 1; seed <= 6; seed++) {
      const { outcomes } = trySlack({ scenario, seed, trip: SLACK_TRIP }, "update");
      expect(toFigures(outcomes).worstFinal).toBeLessThan(2);
    }
  });

  test("is never refused in one room, with errors of the server", () => {
    for (let seed = 1; seed <= 4; seed++) {
      const options = { errorShare: 0.05, room: "general" };
      const result = trySlack({ scenario: mix(10), seed, trip: seed % 2 === 0 ? 0.6 : SLACK_TRIP, options }, "update");
      expect(toWrongs(result)).toEqual(NO_WRONGS);
    }
  });

  test("leaves a tighter limit than documented alone until its wait is over, and delivers every final", () => {
    for (const [calls, window] of [
      [10, 60],
      [20, 60],
      [3, 10],
    ] as const) {
      const edits = slidingCounter(calls, window, true);
      const honest = slackPlatform("update");
      const platform = (kind: "post" | "edit" | "final", room: string) =>
        kind === "post" ? honest(kind, room, false) : edits;
      const trial = { scenario: several(3, 400, 60, 1), seed: 1, trip: SLACK_TRIP, options: { platform } };
      const { refused, ...wrongs } = toWrongs(trySlack(trial, "update"));
      expect(refused).toBeGreaterThan(0);
      expect(wrongs).toEqual({ overlaps: 0, regressions: 0, impatience: 0, unfinished: 0 });
    }
  });
});
