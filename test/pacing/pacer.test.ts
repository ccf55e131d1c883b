import { describe, expect, test } from "vitest";
import { toFigures, toMean } from "../../lab/pacing/measure.ts";
import { fixedCounter, leakyCounter } from "../../lab/pacing/platform.ts";
import type { Scenario } from "../../lab/pacing/scenarios.ts";
import { several, steady } from "../../lab/pacing/scenarios.ts";
import { DISCORD_TRIP_MS, SLACK_TRIP_MS, type TrialResult, tryDiscord, trySlack } from "../../lab/pacing/trials.ts";
import type { Budget } from "../../src/pacing/budget.ts";
import {
  applyEnd,
  applySend,
  applyText,
  applyWritten,
  createPacer,
  createReplyState,
  isWaiting,
  type Moment,
  toArea,
  toBacklog,
  toUrgency,
} from "../../src/pacing/pacer.ts";
import type { CallKind, Pacer, Written } from "../../src/port/pace.ts";

const ACCEPTED: Written = { answer: { ok: true }, behind: false };

/** A budget with many calls left that never gets another one. */
const PLENTY: Budget = {
  firstGapMs: 330,
  minGapMs: 250,
  spare: 1,
  reserve: () => 0,
  gap: () => 1_000,
  isRich: () => false,
  credit: () => 100,
  creditAt: () => Infinity,
  sent() {},
  done() {},
  keepUntil: () => 0,
};

describe("the pacer of replies", () => {
  /** A budget for `calls` calls. It records their outcomes. */
  function budgetOf(calls: number) {
    const events: string[] = [];
    const left = () => calls - events.filter((event) => event.startsWith("sent")).length;
    const budget: Budget = {
      ...PLENTY,
      credit: left,
      creditAt: (_call, needs, from) => (left() >= needs ? from : Infinity),
      sent: ({ kind, room }, now) => void events.push(`sent ${kind} ${room} ${now}`),
      done: (planned, { kind, sentAt }) => void events.push(`done ${planned.kind} as ${kind} of ${sentAt}`),
      keepUntil: () => 77,
    };
    return { budget, events };
  }

  function send(pacer: Pacer, now: number): number {
    const step = pacer.step(now);
    if (step.type !== "send") throw new Error(`Nothing is sent at ${now}.`);
    return step.reply;
  }

  test("the pacer starts with the call that the reply names", () => {
    const { budget, events } = budgetOf(9);
    const pacer = createPacer(budget);
    pacer.end(pacer.join({ room: "a", first: "edit" }));
    send(pacer, 0);
    pacer.text(pacer.join({ room: "b", first: "edit" }), 1, 1_000);
    expect(pacer.step(1_000)).toMatchObject({ type: "wait" });
    send(pacer, 9_000);
    expect(events).toEqual(["sent final a 0", "sent edit b 9000"]);
  });

  test("the pacer sends finals first, then first posts, then the edit that has waited at the highest cost", () => {
    const pacer = createPacer(budgetOf(100).budget);
    const [little, much, fresh, ending] = [pacer.join(), pacer.join(), pacer.join(), pacer.join()];
    for (const reply of [little, much, ending]) {
      pacer.text(reply, 4, 0);
      expect(send(pacer, 100)).toBe(reply);
      pacer.done(reply, ACCEPTED, 200);
    }
    pacer.text(little, 40, 1_000);
    pacer.text(much, 400, 1_000);
    pacer.text(fresh, 4, 1_000);
    pacer.text(ending, 4, 1_000);
    pacer.end(ending);
    expect([send(pacer, 9_000), send(pacer, 9_000), send(pacer, 9_000), send(pacer, 9_000)]).toEqual([
      ending,
      fresh,
      much,
      little,
    ]);
    expect(pacer.step(9_000)).toEqual({ type: "idle" });
  });

  test("the pacer has one call in flight per reply, and reports each to the budget", () => {
    const { budget, events } = budgetOf(100);
    const pacer = createPacer(budget);
    const reply = pacer.join({ room: "general" });
    pacer.text(reply, 4, 0);
    expect(pacer.step(0)).toEqual({ type: "wait", until: 25 });
    send(pacer, 100);
    pacer.text(reply, 400, 5_000);
    expect(pacer.step(5_000)).toEqual({ type: "idle" });
    pacer.done(reply, { ...ACCEPTED, kind: "edit" }, 6_000);
    expect(send(pacer, 6_000)).toBe(reply);
    expect(events).toEqual(["sent post general 100", "done post as edit of 100", "sent edit general 6000"]);
  });

  test("the pacer also reports calls of abandoned replies to the budget", () => {
    const { budget, events } = budgetOf(100);
    const pacer = createPacer(budget);
    const reply = pacer.join();
    pacer.text(reply, 4, 0);
    send(pacer, 1_000);
    pacer.leave(reply);
    pacer.done(reply, { answer: { ok: false, retryAfterMs: 3_000 }, behind: true }, 2_000);
    pacer.done(reply, ACCEPTED, 3_000);
    expect(events).toHaveLength(2);
    expect(pacer.step(60_000)).toEqual({ type: "idle" });
    expect(pacer.keepUntil()).toBe(77);
  });

  test("the pacer sends nothing beyond the budget", () => {
    const pacer = createPacer(budgetOf(1).budget);
    const [first, second] = [pacer.join(), pacer.join()];
    pacer.text(first, 4, 0);
    pacer.text(second, 4, 0);
    send(pacer, 1_000);
    expect(pacer.step(1_000).type).not.toBe("send");
    pacer.end(second);
    expect(pacer.step(2_000).type).not.toBe("send");
  });

  test("a reply without text makes no call before its end, and one call at its end", () => {
    const pacer = createPacer(budgetOf(100).budget);
    const reply = pacer.join();
    pacer.text(reply, 0, 0);
    expect(pacer.step(10_000)).toEqual({ type: "idle" });
    pacer.end(reply);
    expect(pacer.step(10_000)).toEqual({ type: "send", reply, kind: "post" });
  });
});

describe("the pacer under virtual time", () => {
  const SEEDS = 15;

  function meanOf(run: (seed: number) => TrialResult): number {
    const figures = Array.from({ length: SEEDS }, (_, seed) => toFigures(run(seed + 1).outcomes));
    expect(figures.every(({ refused, lost }) => refused === 0 && lost === 0)).toBe(true);
    return toMean(figures).mean;
  }

  /** The policy's measured mean lags, in seconds. An implementation must stay within a tenth of them. */
  const fixed = { "40@60": 0.22, "400@60": 0.63, "1500@30": 0.61, "3 x 400@60": 1.69 };
  const leaky = { "400@60": 0.42, "1500@30": 0.56 };
  const update = { "40@60": 0.28, "400@60": 0.35, "1500@30": 0.78, "5 x 400@60": 0.56, "5 x 1500@30": 3.65 };
  const append = { "40@60": 0.28, "400@60": 0.31, "1500@30": 0.45, "5 x 400@60": 0.34, "5 x 1500@30": 1.77 };
  const scenarios: Record<string, Scenario> = {
    "40@60": () => [steady(40, 60)],
    "400@60": () => [steady(400, 60)],
    "1500@30": () => [steady(1500, 30)],
    "3 x 400@60": several(3, 400, 60, 1_000),
    "5 x 400@60": several(5, 400, 60, 0),
    "5 x 1500@30": several(5, 1500, 30, 2_000),
  };
  const cases: Array<[string, Record<string, number>, (scenario: Scenario, seed: number) => TrialResult]> = [
    [
      "Discord, fixed window",
      fixed,
      (scenario, seed) => tryDiscord({ scenario, seed, tripMs: DISCORD_TRIP_MS }, () => fixedCounter(5, 5_000), 1),
    ],
    [
      "Discord, two leaky counters",
      leaky,
      (scenario, seed) => tryDiscord({ scenario, seed, tripMs: DISCORD_TRIP_MS }, () => leakyCounter(5, 5_000), 2),
    ],
    ["Slack, update", update, (scenario, seed) => trySlack({ scenario, seed, tripMs: SLACK_TRIP_MS }, "update")],
    ["Slack, append", append, (scenario, seed) => trySlack({ scenario, seed, tripMs: SLACK_TRIP_MS }, "append")],
  ];

  for (const [platform, means, run] of cases) {
    for (const [name, mean] of Object.entries(means)) {
      test(`the pacer keeps the policy's mean lag: ${platform}, ${name}`, () => {
        const scenario = scenarios[name];
        if (scenario === undefined) throw new Error(`There is no scenario ${name}.`);
        const lag = meanOf((seed) => run(scenario, seed));
        expect(Math.abs(lag / mean - 1)).toBeLessThan(0.1);
      });
    }
  }

  test("the pacer shows the first text within half a round trip plus the hold time", () => {
    for (let seed = 0; seed < SEEDS; seed++) {
      const options = { roundTrip: () => 200 };
      const { outcomes } = tryDiscord(
        { scenario: () => [steady(100, 60)], seed, tripMs: 200, options },
        () => fixedCounter(5, 5_000),
        1,
      );
      expect(outcomes[0]?.showings[0]?.at).toBeCloseTo(200, 3);
    }
  });
});

describe("the urgency of a call", () => {
  function momentAt(
    now: number,
    { budget, ...more }: Partial<Omit<Moment, "budget">> & { budget?: Partial<Budget> } = {},
  ) {
    const common = { gap: 1_000, active: 1, rootRates: 0, reserve: 0, lastCall: -Infinity, beginAt: now };
    return { now, ...common, budget: { ...PLENTY, ...budget }, ...more };
  }

  const dueAt = (reply: ReturnType<typeof createReplyState>, ...moment: Parameters<typeof momentAt>) =>
    toUrgency(reply, momentAt(...moment)).at;

  /**
   * A reply that grew by 240 units per second and was posted after 10 s. Its later text arrives at 60 tokens per
   * second.
   */
  function growing({ edits = 1, until = 10_100 } = {}) {
    const reply = createReplyState("room");
    for (let token = 0; token <= 600; token++) applyText(reply, 4, (token * 1_000) / 60);
    const calls: CallKind[] = ["post", ...Array.from({ length: edits }, (): CallKind => "edit")];
    for (const kind of calls) {
      applySend(reply, kind, 10_000);
      applyWritten(reply, { answer: { ok: true }, behind: false }, 10_000_000);
    }
    for (let token = 601; (token * 1_000) / 60 <= until; token++) applyText(reply, 4, (token * 1_000) / 60);
    return reply;
  }

  test("the pacer holds the first post while more text is likely, at most a tenth of a second", () => {
    const dueOf = (...arrivals: number[]) => {
      const reply = createReplyState("room");
      for (const at of arrivals) applyText(reply, 4, at);
      return dueAt(reply, arrivals.at(-1) ?? 0);
    };
    expect(dueOf(5_000)).toBeCloseTo(5_025);
    expect(dueOf(5_000, 5_020)).toBeCloseTo(5_060);
    expect(dueOf(5_000, 5_020, 5_040, 5_060)).toBeCloseTo(5_100);
    // The next call would come too late.
    expect(dueOf(5_000, 5_060)).toBeCloseTo(5_060);
    const late = createReplyState("room");
    applyText(late, 4, 5_000);
    expect(toUrgency(late, momentAt(5_200))).toEqual({ rank: 1, kind: "post", at: 5_200 });
  });

  test("the pacer holds the first post for at most twenty seconds if its final would wait long for a call", () => {
    const reply = createReplyState("room");
    applyText(reply, 4, 5_000);
    const dueWith = (beginAt: number) => dueAt(reply, 5_000, { beginAt });
    expect(dueWith(12_000)).toBeCloseTo(5_025);
    expect(dueWith(20_000)).toBe(12_000);
    expect(dueWith(60_000)).toBe(25_000);
    applyEnd(reply);
    expect(dueWith(60_000)).toBe(5_000);
  });

  test("a final is due at once, as a post if the reply has no message yet", () => {
    const reply = createReplyState("room");
    applyText(reply, 4, 5_000);
    applyEnd(reply);
    expect(toUrgency(reply, momentAt(5_000))).toEqual({ rank: 0, kind: "post", at: 5_000 });
    const posted = growing();
    applyEnd(posted);
    expect(toUrgency(posted, momentAt(10_100))).toEqual({ rank: 0, kind: "final", at: 10_100 });
  });

  test("the next message is due at once if the text overflows", () => {
    const reply = growing();
    applySend(reply, "edit", 10_200);
    applyWritten(reply, { answer: { ok: true }, behind: true, next: "post" }, 10_400);
    expect(toUrgency(reply, momentAt(10_400))).toEqual({ rank: 1, kind: "post", at: 10_400 });
  });

  test("steady text goes out exactly one planned gap after it arrived", () => {
    const reply = growing({ until: 10_980 });
    const { at } = toUrgency(reply, momentAt(10_980));
    expect(at).toBeGreaterThan(10_980);
    expect(at).toBeLessThan(11_030);
  });

  test("the first edit goes out early while many calls are left", () => {
    const eager = growing({ edits: 0, until: 10_300 });
    expect(dueAt(eager, 10_300, { budget: { isRich: () => true, credit: () => 1 } })).toBeCloseTo(10_330, -2);
    expect(dueAt(eager, 10_300, { budget: { credit: () => 1 } })).toBeGreaterThan(10_500);
  });

  test("text never waits longer than one and a half of the planned gaps", () => {
    const reply = growing({ until: 10_020 });
    expect(dueAt(reply, 10_020, { gap: 2_000, budget: { credit: () => 1 } })).toBeCloseTo(
      10_000 + 1_000 / 60 + 3_000,
      -2,
    );
  });

  test("an edit goes out early if no reply has used the shared budget for a whole gap", () => {
    const reply = growing({ until: 10_900 });
    const dueAfter = (lastCall: number) =>
      dueAt(reply, 10_900, { rootRates: 22 / Math.sqrt(1_000), active: 2, lastCall, budget: { credit: () => 1 } });
    expect(dueAfter(9_000)).toBeLessThan(11_850);
    expect(dueAfter(10_900)).toBeCloseTo(11_900);
    expect(dueAfter(11_500)).toBeCloseTo(12_500);
  });

  test("the pacer uses a lull if enough text is unseen and the budget has spare calls", () => {
    const reply = growing({ until: 10_500 });
    expect(dueAt(reply, 10_550)).toBeCloseTo(10_500 + 4_000 / 60, -1);
    expect(dueAt(reply, 10_550, { budget: { credit: () => 1 } })).toBeGreaterThan(10_700);
    const little = growing({ until: 10_100 });
    expect(dueAt(little, 10_170)).toBeGreaterThan(10_300);
  });

  test("the pacer shows the remaining text before a long pause if many calls are left", () => {
    const little = growing({ until: 10_100 });
    expect(dueAt(little, 10_200, { budget: { isRich: () => true } })).toBeCloseTo(10_600, -2);
  });

  test("two calls of one reply keep a distance", () => {
    const reply = growing({ until: 10_100 });
    expect(dueAt(reply, 10_100, { gap: 10 })).toBe(10_250);
  });

  test("the pacer reserves some calls for finals, unless another call becomes available soon", () => {
    const reply = growing({ until: 12_000 });
    expect(dueAt(reply, 12_000, { reserve: 3, budget: { credit: () => 3, creditAt: () => 20_000 } })).toBe(20_000);
    expect(dueAt(reply, 12_000, { reserve: 3, budget: { credit: () => 3, creditAt: () => 15_000 } })).toBe(12_000);
    expect(dueAt(reply, 12_000, { reserve: 3, budget: { credit: () => 4, creditAt: () => 20_000 } })).toBe(12_000);
    applyEnd(reply);
    expect(dueAt(reply, 12_000, { reserve: 3, budget: { credit: () => 1 } })).toBe(12_000);
  });

  test("the pacer asks again after at least two milliseconds, and not before a back-off ends", () => {
    const reply = growing({ until: 12_000 });
    expect(dueAt(reply, 12_000, { budget: { credit: () => 0, creditAt: () => 12_000 } })).toBeCloseTo(12_002);
    reply.notBefore = 14_000;
    expect(dueAt(reply, 12_000)).toBe(14_000);
  });
});

describe("the state of a reply", () => {
  function replyWith(...texts: Array<[at: number, units: number]>) {
    const reply = createReplyState("room");
    for (const [at, units] of texts) applyText(reply, units, at);
    return reply;
  }

  test("a reply adds up its unseen text over time", () => {
    const reply = replyWith([0, 4], [1_000, 4]);
    expect(toBacklog(reply)).toBe(8);
    expect(toArea(reply, 2_000)).toBe(4_000 + 8_000);
    expect(reply.oldest).toBe(0);
    applySend(reply, "post", 2_000);
    expect([toBacklog(reply), toArea(reply, 3_000), reply.oldest]).toEqual([0, 0, Infinity]);
    expect(isWaiting(reply)).toBe(false);
  });

  test("a reply measures the rate of steady text, and counts a pause as half a second at most", () => {
    const reply = createReplyState("room");
    for (let token = 0; token < 600; token++) applyText(reply, 4, (token * 1_000) / 60);
    expect(reply.rate).toBeGreaterThan(0.23);
    expect(reply.rate).toBeLessThan(0.25);
    expect(reply.arrivalGap).toBeCloseTo(1_000 / 60);
    applyText(reply, 4, 60_000);
    expect(reply.rate).toBeGreaterThan(0.2);
  });

  test("several deltas of one network read do not count as a gap", () => {
    const reply = replyWith([0, 4], [1, 4]);
    expect(reply.arrivalGap).toBeUndefined();
    applyText(reply, 4, 5_000);
    expect(reply.arrivalGap).toBe(2_000);
  });

  test("after a failed call, its text counts as unsent again", () => {
    const reply = replyWith([0, 4], [1_000, 4]);
    applySend(reply, "post", 1_000);
    applyText(reply, 4, 2_000);
    applyWritten(reply, { answer: { ok: false }, behind: true }, 3_000);
    expect(toBacklog(reply)).toBe(12);
    expect(toArea(reply, 3_000)).toBe(4_000 + 8 * 2_000 + 4 * 1_000);
    expect(reply.oldest).toBe(0);
    expect(reply.next).toBe("post");
    expect(reply.notBefore).toBe(3_500);
  });

  test("the wait grows with each failure, but not for a rate limit", () => {
    const reply = replyWith([0, 4]);
    for (const [index, waitMs] of [500, 1_000, 2_000].entries()) {
      const now = index * 1_000;
      applySend(reply, "post", now);
      applyWritten(reply, { answer: { ok: false }, behind: true }, now);
      expect(reply.notBefore).toBe(now + waitMs);
    }
    applySend(reply, "post", 10_000);
    applyWritten(reply, { answer: { ok: false, retryAfterMs: 3_000 }, behind: true }, 10_000);
    expect(reply.notBefore).toBe(4_000);
    applySend(reply, "post", 13_000);
    applyWritten(reply, ACCEPTED, 13_000);
    expect([reply.failures, reply.next, isWaiting(reply)]).toEqual([0, "edit", false]);
  });

  test("a reply needs further calls until a call that started after the reply's end has shown everything", () => {
    const reply = replyWith([0, 4]);
    applySend(reply, "post", 0);
    applyEnd(reply);
    applyWritten(reply, ACCEPTED, 1_000);
    expect(isWaiting(reply)).toBe(true);
    applySend(reply, "final", 1_000);
    applyWritten(reply, { answer: { ok: true }, behind: true, next: "post" }, 2_000);
    expect([isWaiting(reply), reply.next]).toEqual([true, "post"]);
    applySend(reply, "post", 2_000);
    applyWritten(reply, { answer: { ok: false }, behind: true }, 3_000);
    expect(isWaiting(reply)).toBe(true);
    applySend(reply, "post", 4_000);
    applyWritten(reply, ACCEPTED, 5_000);
    expect(isWaiting(reply)).toBe(false);
  });

  test("a reply still waits for text that did not fit in one message, but not for text that came during the call", () => {
    const reply = replyWith([0, 4]);
    applySend(reply, "post", 0);
    applyWritten(reply, { answer: { ok: true }, behind: true }, 1_000);
    expect(reply.needsCall).toBe(true);
    applySend(reply, "edit", 1_000);
    applyText(reply, 4, 1_500);
    applyWritten(reply, { answer: { ok: true }, behind: true }, 2_000);
    expect(reply.needsCall).toBe(false);
    applySend(reply, "edit", 2_000);
    applyText(reply, 4, 2_500);
    applyWritten(reply, { answer: { ok: true }, behind: true, next: "post" }, 3_000);
    expect(reply.needsCall).toBe(true);
  });

  test("a reply ignores a result without a call", () => {
    const reply = replyWith([0, 4]);
    applyWritten(reply, ACCEPTED, 1_000);
    expect(toBacklog(reply)).toBe(4);
  });
});
