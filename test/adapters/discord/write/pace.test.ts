import { describe, expect, test } from "vitest";
import { createDiscordBudget, createDiscordShared, createOneByOne } from "../../../../adapters/discord/write/pace.ts";
import { toFigures, toMean } from "../../../../lab/pacing/measure.ts";
import type { PlatformCounter } from "../../../../lab/pacing/platform.ts";
import { fixedCounter, leakyCounter, slidingCounter } from "../../../../lab/pacing/platform.ts";
import { anything, several } from "../../../../lab/pacing/scenarios.ts";
import { DISCORD_TRIP_MS, NO_WRONGS, toWrongs, tryDiscord } from "../../../../lab/pacing/trials.ts";
import type { Call } from "../../../../src/pacing/budget.ts";
import { createEvenPacer } from "../../../../src/pacing/even.ts";
import { createPacer } from "../../../../src/pacing/pacer.ts";
import type { CallResult, Pacer } from "../../../../src/port/pace.ts";

describe("the budget of calls to Discord", () => {
  const EDIT: Call = { kind: "edit", room: "channel" };
  const POST: Call = { kind: "post", room: "channel" };
  const DEMAND = { growing: [], active: 1, unfinished: 1, starts: [] };

  function left(remaining: number, resetAfterMs = 4_800): CallResult {
    return { ok: true, budget: { limit: 5, remaining, resetAfterMs } };
  }

  test("the budget treats posts and edits as one counter until a response proves that there are two", () => {
    const shared = createDiscordShared();
    const budget = createDiscordBudget(shared);
    budget.sent(POST, 0);
    expect([POST, EDIT].map((call) => budget.credit(call, 100))).toEqual([4, 4]);
    budget.done(POST, { kind: "post", sentAt: 0, answer: left(4) }, 200);
    budget.sent(EDIT, 500);
    budget.done(EDIT, { kind: "edit", sentAt: 500, answer: left(4) }, 700);
    expect(shared.learnt.isSplit).toBe(true);
    for (let call = 0; call < 4; call++) budget.sent(EDIT, 800);
    expect([POST, EDIT].map((call) => budget.credit(call, 800))).toEqual([4, 0]);
  });

  test("the budget keeps one counter if the second response shows one call less", () => {
    const shared = createDiscordShared();
    const budget = createDiscordBudget(shared);
    budget.sent(POST, 0);
    budget.done(POST, { kind: "post", sentAt: 0, answer: left(4) }, 200);
    budget.sent(EDIT, 500);
    budget.done(EDIT, { kind: "edit", sentAt: 500, answer: left(3, 4_300) }, 700);
    expect(shared.learnt.isSplit).toBe(false);
    expect(shared.learnt.edit.mode).toBe("fixed");
    expect([POST, EDIT].map((call) => budget.credit(call, 800))).toEqual([3, 3]);
  });

  test("the budget waits after a refusal, only in that channel", () => {
    const shared = createDiscordShared();
    const [first, second] = [createDiscordBudget(shared), createDiscordBudget(shared)];
    first.sent(EDIT, 0);
    first.done(EDIT, { kind: "edit", sentAt: 0, answer: { ok: false, retryAfterMs: 9_000 } }, 200);
    expect(first.credit(EDIT, 1_000)).toBe(0);
    expect(first.creditAt(EDIT, 1, 1_000)).toBeCloseTo(9_200);
    expect(second.credit(EDIT, 1_000)).toBe(5);
  });

  test("the budget keeps waiting for a refused call after it learns that posts and edits count separately", () => {
    const budget = createDiscordBudget(createDiscordShared());
    budget.sent(POST, 0);
    budget.done(POST, { kind: "post", sentAt: 0, answer: left(4) }, 200);
    budget.sent(EDIT, 500);
    budget.sent(EDIT, 600);
    budget.done(EDIT, { kind: "edit", sentAt: 500, answer: { ok: false, retryAfterMs: 9_000 } }, 700);
    budget.done(EDIT, { kind: "edit", sentAt: 600, answer: left(4) }, 800);
    expect(budget.credit(EDIT, 5_000)).toBe(0);
  });

  test("all channels share the budget's knowledge of the counters, and the bot's total limit", () => {
    const shared = createDiscordShared();
    const first = createDiscordBudget(shared);
    first.sent(EDIT, 0);
    first.done(EDIT, { kind: "edit", sentAt: 0, answer: left(4, 1_000) }, 200);
    first.sent(EDIT, 300);
    first.done(EDIT, { kind: "edit", sentAt: 300, answer: left(3, 1_700) }, 500);
    expect(shared.learnt.edit).toEqual({ mode: "leaky", limit: 5, windowMs: 5_000 });
    const channels = Array.from({ length: 20 }, () => createDiscordBudget(shared));
    for (const channel of channels) for (let call = 0; call < 2; call++) channel.sent(EDIT, 1_000);
    expect(channels[0]?.credit(EDIT, 1_000)).toBe(3);
    for (let call = 0; call < 3; call++) channels[1]?.sent(EDIT, 1_000);
    expect(channels[0]?.credit(EDIT, 1_000)).toBe(0);
    expect(channels[0]?.creditAt(EDIT, 1, 1_000)).toBe(1_200);
  });

  test("the budget counts a call under the counter that Discord's response proves", () => {
    const shared = createDiscordShared();
    shared.learnt.isSplit = true;
    const budget = createDiscordBudget(shared);
    budget.sent(EDIT, 0);
    budget.done(EDIT, { kind: "post", sentAt: 0, answer: left(4) }, 200);
    expect([POST, EDIT].map((call) => budget.credit(call, 300))).toEqual([4, 5]);
    expect(budget.gap({ now: 300, ...DEMAND })).toBeCloseTo(350);
    expect(budget.keepUntil()).toBe(60_000);
  });
});

describe("the budget of calls against every kind of counter", () => {
  const kinds: Record<string, () => PlatformCounter> = {
    "fixed 5 per 5 s": () => fixedCounter(5, 5_000),
    "fixed 5 per 1 s": () => fixedCounter(5, 1_000),
    "fixed 10 per 10 s": () => fixedCounter(10, 10_000),
    "leaky 5 per 5 s": () => leakyCounter(5, 5_000),
    "leaky 10 per 10 s": () => leakyCounter(10, 10_000),
    "sliding 5 per 5 s": () => slidingCounter(5, 5_000),
  };
  const tripsMs = [80, 180, 350, 600];

  for (const [name, create] of Object.entries(kinds)) {
    for (const counters of [1, 2] as const) {
      const sweep = (runs: number, options: object, seed = 0) => {
        for (let run = 0; run < runs; run++) {
          const trial = { scenario: anything, seed: seed + run, tripMs: tripsMs[run % tripsMs.length] ?? 180, options };
          expect({ run, ...toWrongs(tryDiscord(trial, create, counters)) }).toEqual({ run, ...NO_WRONGS });
        }
      };

      test(`Discord refuses no call of the budget: ${name}, ${counters} counter(s)`, () => sweep(24, {}));
      test(`Discord refuses no call of the budget despite server errors: ${name}, ${counters} counter(s)`, () =>
        sweep(16, { errorShare: 0.05 }, 1000));
      test(`Discord refuses no call of the budget without headers: ${name}, ${counters} counter(s)`, () => {
        sweep(8, { headersOf: () => undefined }, 2000);
        sweep(8, { headersOf: (headers: object, call: number) => (call === 1 ? undefined : headers) }, 3000);
      });
    }
  }

  test("Discord refuses no call in a channel whose kind of counter differs from the remembered one", () => {
    const creates = Object.values(kinds);
    for (const [index, create] of creates.entries()) {
      const shared = createDiscordShared();
      for (let run = 0; run < 6; run++) {
        const counter = run % 2 === 0 ? create : (creates[(index + 1) % creates.length] ?? create);
        const result = tryDiscord({ scenario: anything, seed: 40 + run, tripMs: 180 }, counter, 1, shared);
        expect(toWrongs(result)).toEqual(NO_WRONGS);
      }
    }
  });

  test("the budget waits out an early refusal and delivers every final text", () => {
    let refusals = 0;
    for (let seed = 0; seed < 12; seed++) {
      const counter = fixedCounter(3, 5_000);
      const lying: PlatformCounter = {
        take(at) {
          const verdict = counter.take(at);
          if (!verdict.ok) return verdict;
          return { ok: true, headers: { ...verdict.headers, limit: 5, remaining: verdict.headers.remaining + 2 } };
        },
      };
      const { refused, ...wrongs } = toWrongs(tryDiscord({ scenario: anything, seed, tripMs: 180 }, () => lying, 1));
      refusals += refused;
      expect(wrongs).toEqual({ overlaps: 0, regressions: 0, impatience: 0, unfinished: 0 });
    }
    expect(refusals).toBeGreaterThan(0);
  });
});

describe("calls that the budget makes one by one", () => {
  const OK = { answer: { ok: true }, behind: false } as const;

  function startTwo(): { pacer: Pacer; first: number; second: number } {
    const pacer = createOneByOne(createEvenPacer({ gapMs: 0 }));
    const [first, second] = [pacer.join(), pacer.join()];
    pacer.text(first, 10, 1_000);
    pacer.text(second, 10, 1_000);
    return { pacer, first, second };
  }

  /** Mean delay of five concurrent replies in one channel, over several runs. */
  function toLag(create: () => ReturnType<typeof fixedCounter>, wrap: (pacer: Pacer) => Pacer): number {
    const runs = Array.from({ length: 8 }, (_, run) => {
      const pacer = wrap(createPacer(createDiscordBudget(createDiscordShared())));
      const scenario = several(5, 400, 60, 0);
      const trial = { scenario, seed: run + 1, tripMs: DISCORD_TRIP_MS, options: { pacer } };
      const result = tryDiscord(trial, create, 1);
      expect(toWrongs(result)).toEqual(NO_WRONGS);
      return toFigures(result.outcomes);
    });
    return toMean(runs).mean;
  }

  test("a call starts when the previous call has its response", () => {
    const { pacer } = startTwo();
    const step = pacer.step(2_000);
    if (step.type !== "send") throw new Error("Nothing was sent.");
    expect(pacer.step(2_000)).toEqual({ type: "idle" });
    pacer.done(step.reply, OK, 3_000);
    expect(pacer.step(3_000)).toMatchObject({ type: "send" });
  });

  test("calls continue after a reply is aborted in the middle of its call", () => {
    const { pacer } = startTwo();
    const step = pacer.step(2_000);
    if (step.type !== "send") throw new Error("Nothing was sent.");
    pacer.leave(step.reply);
    expect(pacer.step(2_500)).toEqual({ type: "idle" });
    pacer.done(step.reply, OK, 3_000);
    expect(pacer.step(3_000)).toMatchObject({ type: "send" });
  });

  test.each([
    ["fixed", () => fixedCounter(5, 5_000)],
    ["leaky", () => leakyCounter(5, 5_000)],
    ["sliding", () => slidingCounter(5, 5_000)],
  ] as const)("a budget with a %s counter learns its kind when several replies start at once", (_, create) => {
    expect(toLag(create, createOneByOne)).toBeLessThan(0.9 * toLag(create, (pacer) => pacer));
  });
});
