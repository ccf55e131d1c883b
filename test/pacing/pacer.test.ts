import { describe, expect, test } from "vitest";
import type { Budget } from "../../src/pacing/budget.ts";
import type { Written } from "../../src/pacing/call.ts";
import { createPacer, type Pacer } from "../../src/pacing/pacer.ts";
import { toFigures, toMean } from "../support/pacing/measure.ts";
import { fixedCounter, leakyCounter } from "../support/pacing/platform.ts";
import type { Scenario } from "../support/pacing/scenarios.ts";
import { several, steady } from "../support/pacing/scenarios.ts";
import { DISCORD_TRIP, SLACK_TRIP, type TrialResult, tryDiscord, trySlack } from "../support/pacing/trials.ts";

const ACCEPTED: Written = { answer: { ok: true }, behind: false };

/** A budget that allows `calls` calls and remembers what became of them. */
function budgetOf(calls: number) {
  const events: string[] = [];
  const left = () => calls - events.filter((event) => event.startsWith("sent")).length;
  const budget: Budget = {
    firstGap: 0.33,
    minGap: 0.25,
    keep: 1,
    reserve: () => 0,
    gap: () => 1,
    isRich: () => false,
    credit: left,
    creditAt: (_call, needs, from) => (left() >= needs ? from : Infinity),
    sent: ({ kind, room }, now) => void events.push(`sent ${kind} ${room} ${now}`),
    done: (planned, made, sentAt) => void events.push(`done ${planned.kind} as ${made} of ${sentAt}`),
    keepUntil: () => 77,
  };
  return { budget, events };
}

function send(pacer: Pacer, now: number): number {
  const step = pacer.step(now);
  if (step.type !== "send") throw new Error(`Nothing is sent at ${now}.`);
  return step.reply;
}

describe("pacer", () => {
  test("begins with the call that it is told", () => {
    const { budget, events } = budgetOf(9);
    const pacer = createPacer(budget);
    pacer.end(pacer.join(0, "a", false, "edit"), 0);
    send(pacer, 0);
    pacer.text(pacer.join(1, "b", false, "edit"), 1, 1);
    expect(pacer.step(1)).toMatchObject({ type: "wait" });
    send(pacer, 9);
    expect(events).toEqual(["sent final a 0", "sent edit b 9"]);
  });

  test("sends finals first, then first posts, then the edit that cost most so far", () => {
    const pacer = createPacer(budgetOf(100).budget);
    const [little, much, fresh, ending] = [pacer.join(0), pacer.join(0), pacer.join(0), pacer.join(0)];
    for (const reply of [little, much, ending]) {
      pacer.text(reply, 4, 0);
      expect(send(pacer, 0.1)).toBe(reply);
      pacer.done(reply, ACCEPTED, 0.2);
    }
    pacer.text(little, 40, 1);
    pacer.text(much, 400, 1);
    pacer.text(fresh, 4, 1);
    pacer.text(ending, 4, 1);
    pacer.end(ending, 1);
    expect([send(pacer, 9), send(pacer, 9), send(pacer, 9), send(pacer, 9)]).toEqual([ending, fresh, much, little]);
    expect(pacer.step(9)).toEqual({ type: "idle" });
  });

  test("has one call of a reply in flight, and tells the budget of each", () => {
    const { budget, events } = budgetOf(100);
    const pacer = createPacer(budget);
    const reply = pacer.join(0, "general");
    pacer.text(reply, 4, 0);
    expect(pacer.step(0)).toEqual({ type: "wait", until: 0.025 });
    send(pacer, 0.1);
    pacer.text(reply, 400, 5);
    expect(pacer.step(5)).toEqual({ type: "idle" });
    pacer.done(reply, { ...ACCEPTED, kind: "edit" }, 6);
    expect(send(pacer, 6)).toBe(reply);
    expect(events).toEqual(["sent post general 0.1", "done post as edit of 0.1", "sent edit general 6"]);
  });

  test("tells the budget also of calls whose reply has left", () => {
    const { budget, events } = budgetOf(100);
    const pacer = createPacer(budget);
    const reply = pacer.join(0);
    pacer.text(reply, 4, 0);
    send(pacer, 1);
    pacer.leave(reply, 1);
    pacer.done(reply, { answer: { ok: false, retryAfter: 3 }, behind: true }, 2);
    pacer.done(reply, ACCEPTED, 3);
    expect(events).toHaveLength(2);
    expect(pacer.step(60)).toEqual({ type: "idle" });
    expect(pacer.keepUntil()).toBe(77);
  });

  test("sends nothing that the budget does not have", () => {
    const pacer = createPacer(budgetOf(1).budget);
    const [first, second] = [pacer.join(0), pacer.join(0)];
    pacer.text(first, 4, 0);
    pacer.text(second, 4, 0);
    send(pacer, 1);
    expect(pacer.step(1).type).not.toBe("send");
    pacer.end(second, 2);
    expect(pacer.step(2).type).not.toBe("send");
  });

  test("shows nothing for a reply without text before its end, then one call", () => {
    const pacer = createPacer(budgetOf(100).budget);
    const reply = pacer.join(0);
    pacer.text(reply, 0, 0);
    expect(pacer.step(10)).toEqual({ type: "idle" });
    pacer.end(reply, 10);
    expect(pacer.step(10)).toEqual({ type: "send", reply, kind: "post" });
  });
});

describe("pacer under virtual time", () => {
  const SEEDS = 15;

  function meanOf(run: (seed: number) => TrialResult): number {
    const figures = Array.from({ length: SEEDS }, (_, seed) => toFigures(run(seed + 1).outcomes));
    expect(figures.every(({ refused, lost }) => refused === 0 && lost === 0)).toBe(true);
    return toMean(figures).mean;
  }

  /** Mean lags of the policy as they were found, seconds: an implementation keeps within a tenth of them. */
  const fixed = { "40@60": 0.22, "400@60": 0.63, "1500@30": 0.61, "3 x 400@60": 1.69 };
  const leaky = { "400@60": 0.42, "1500@30": 0.56 };
  const update = { "40@60": 0.28, "400@60": 0.35, "1500@30": 0.78, "5 x 400@60": 0.56, "5 x 1500@30": 3.65 };
  const append = { "40@60": 0.28, "400@60": 0.31, "1500@30": 0.45, "5 x 400@60": 0.34, "5 x 1500@30": 1.77 };
  const scenarios: Record<string, Scenario> = {
    "40@60": () => [steady(40, 60)],
    "400@60": () => [steady(400, 60)],
    "1500@30": () => [steady(1500, 30)],
    "3 x 400@60": several(3, 400, 60, 1),
    "5 x 400@60": several(5, 400, 60, 0),
    "5 x 1500@30": several(5, 1500, 30, 2),
  };
  const cases: Array<[string, Record<string, number>, (scenario: Scenario, seed: number) => TrialResult]> = [
    [
      "Discord, fixed window",
      fixed,
      (scenario, seed) => tryDiscord({ scenario, seed, trip: DISCORD_TRIP }, () => fixedCounter(5, 5), 1),
    ],
    [
      "Discord, two leaky counters",
      leaky,
      (scenario, seed) => tryDiscord({ scenario, seed, trip: DISCORD_TRIP }, () => leakyCounter(5, 5), 2),
    ],
    ["Slack, update", update, (scenario, seed) => trySlack({ scenario, seed, trip: SLACK_TRIP }, "update")],
    ["Slack, append", append, (scenario, seed) => trySlack({ scenario, seed, trip: SLACK_TRIP }, "append")],
  ];

  for (const [platform, means, run] of cases) {
    for (const [name, mean] of Object.entries(means)) {
      test(`keeps the mean lag of the policy: ${platform}, ${name}`, () => {
        const scenario = scenarios[name];
        if (scenario === undefined) throw new Error(`There is no scenario ${name}.`);
        const lag = meanOf((seed) => run(scenario, seed));
        expect(Math.abs(lag / mean - 1)).toBeLessThan(0.1);
      });
    }
  }

  test("shows the first text within half a round trip and the hold", () => {
    for (let seed = 0; seed < SEEDS; seed++) {
      const options = { roundTrip: () => 0.2 };
      const { outcomes } = tryDiscord(
        { scenario: () => [steady(100, 60)], seed, trip: 0.2, options },
        () => fixedCounter(5, 5),
        1,
      );
      expect(outcomes[0]?.showings[0]?.at).toBeCloseTo(0.2, 6);
    }
  });
});
