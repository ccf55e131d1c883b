import { describe, expect, test } from "vitest";
import type { Call } from "../../src/pacing/budget.ts";
import type { Answer } from "../../src/pacing/call.ts";
import { createDiscordBudget, createDiscordShared } from "../../src/pacing/discord-budget.ts";
import type { PlatformCounter } from "../support/pacing/platform.ts";
import { fixedCounter, leakyCounter, slidingCounter } from "../support/pacing/platform.ts";
import { anything } from "../support/pacing/scenarios.ts";
import { NO_WRONGS, toWrongs, tryDiscord } from "../support/pacing/trials.ts";

const EDIT: Call = { kind: "edit", room: "channel" };
const POST: Call = { kind: "post", room: "channel" };
const DEMAND = { live: [], active: 1, unfinished: 1, starts: [] };

function left(remaining: number, resetAfter = 4.8): Answer {
  return { ok: true, budget: { limit: 5, remaining, resetAfter } };
}

describe("discord budget", () => {
  test("takes posts and edits for one counter until an answer proves two", () => {
    const shared = createDiscordShared();
    const budget = createDiscordBudget(shared);
    budget.sent(POST, 0);
    expect([POST, EDIT].map((call) => budget.credit(call, 0.1))).toEqual([4, 4]);
    budget.done(POST, "post", 0, left(4), 0.2);
    budget.sent(EDIT, 0.5);
    budget.done(EDIT, "edit", 0.5, left(4), 0.7);
    expect(shared.learnt.isSplit).toBe(true);
    for (let call = 0; call < 4; call++) budget.sent(EDIT, 0.8);
    expect([POST, EDIT].map((call) => budget.credit(call, 0.8))).toEqual([4, 0]);
  });

  test("keeps one counter when the second answer shows one less", () => {
    const shared = createDiscordShared();
    const budget = createDiscordBudget(shared);
    budget.sent(POST, 0);
    budget.done(POST, "post", 0, left(4), 0.2);
    budget.sent(EDIT, 0.5);
    budget.done(EDIT, "edit", 0.5, left(3, 4.3), 0.7);
    expect(shared.learnt.isSplit).toBe(false);
    expect(shared.learnt.edit.mode).toBe("fixed");
    expect([POST, EDIT].map((call) => budget.credit(call, 0.8))).toEqual([3, 3]);
  });

  test("waits after a refusal in its own channel only", () => {
    const shared = createDiscordShared();
    const [first, second] = [createDiscordBudget(shared), createDiscordBudget(shared)];
    first.sent(EDIT, 0);
    first.done(EDIT, "edit", 0, { ok: false, retryAfter: 9 }, 0.2);
    expect(first.credit(EDIT, 1)).toBe(0);
    expect(first.creditAt(EDIT, 1, 1)).toBeCloseTo(9.2);
    expect(second.credit(EDIT, 1)).toBe(5);
  });

  test("keeps waiting when the counters are told apart during a refusal's wait", () => {
    const budget = createDiscordBudget(createDiscordShared());
    budget.sent(POST, 0);
    budget.done(POST, "post", 0, left(4), 0.2);
    budget.sent(EDIT, 0.5);
    budget.sent(EDIT, 0.6);
    budget.done(EDIT, "edit", 0.5, { ok: false, retryAfter: 9 }, 0.7);
    budget.done(EDIT, "edit", 0.6, left(4), 0.8);
    expect(budget.credit(EDIT, 5)).toBe(0);
  });

  test("shares what it learnt with other channels, and the bot's limit over all", () => {
    const shared = createDiscordShared();
    const first = createDiscordBudget(shared);
    first.sent(EDIT, 0);
    first.done(EDIT, "edit", 0, left(4, 1), 0.2);
    first.sent(EDIT, 0.3);
    first.done(EDIT, "edit", 0.3, left(3, 1.7), 0.5);
    expect(shared.learnt.edit).toEqual({ mode: "leaky", n: 5, w: 5 });
    const channels = Array.from({ length: 20 }, () => createDiscordBudget(shared));
    for (const channel of channels) for (let call = 0; call < 2; call++) channel.sent(EDIT, 1);
    expect(channels[0]?.credit(EDIT, 1)).toBe(3);
    for (let call = 0; call < 3; call++) channels[1]?.sent(EDIT, 1);
    expect(channels[0]?.credit(EDIT, 1)).toBe(0);
    expect(channels[0]?.creditAt(EDIT, 1, 1)).toBe(1.2);
  });

  test("counts a call as what it turned out to be", () => {
    const shared = createDiscordShared();
    shared.learnt.isSplit = true;
    const budget = createDiscordBudget(shared);
    budget.sent(EDIT, 0);
    budget.done(EDIT, "post", 0, left(4), 0.2);
    expect([POST, EDIT].map((call) => budget.credit(call, 0.3))).toEqual([4, 5]);
    expect(budget.gap({ now: 0.3, ...DEMAND })).toBeCloseTo(0.35);
    expect(budget.keepUntil()).toBe(60);
  });
});

describe("discord budget against every kind of counter", () => {
  const kinds: Record<string, () => PlatformCounter> = {
    "fixed 5 per 5 s": () => fixedCounter(5, 5),
    "fixed 5 per 1 s": () => fixedCounter(5, 1),
    "fixed 10 per 10 s": () => fixedCounter(10, 10),
    "leaky 5 per 5 s": () => leakyCounter(5, 5),
    "leaky 10 per 10 s": () => leakyCounter(10, 10),
    "sliding 5 per 5 s": () => slidingCounter(5, 5),
  };
  const trips = [0.08, 0.18, 0.35, 0.6];

  for (const [name, create] of Object.entries(kinds)) {
    for (const counters of [1, 2] as const) {
      const sweep = (runs: number, options: object, seed = 0) => {
        for (let run = 0; run < runs; run++) {
          const trial = { scenario: anything, seed: seed + run, trip: trips[run % trips.length] ?? 0.18, options };
          expect({ run, ...toWrongs(tryDiscord(trial, create, counters)) }).toEqual({ run, ...NO_WRONGS });
        }
      };

      test(`is never refused: ${name}, ${counters} counter(s)`, () => sweep(24, {}));
      test(`is never refused with errors of the server: ${name}, ${counters} counter(s)`, () =>
        sweep(16, { errorShare: 0.05 }, 1000));
      test(`is never refused without headers: ${name}, ${counters} counter(s)`, () => {
        sweep(8, { headersOf: () => undefined }, 2000);
        sweep(8, { headersOf: (headers: object, call: number) => (call === 1 ? undefined : headers) }, 3000);
      });
    }
  }

  test("is never refused in a channel of another kind than the one it remembers", () => {
    const creates = Object.values(kinds);
    for (const [index, create] of creates.entries()) {
      const shared = createDiscordShared();
      for (let run = 0; run < 6; run++) {
        const counter = run % 2 === 0 ? create : (creates[(index + 1) % creates.length] ?? create);
        const result = tryDiscord({ scenario: anything, seed: 40 + run, trip: 0.18 }, counter, 1, shared);
        expect(toWrongs(result)).toEqual(NO_WRONGS);
      }
    }
  });

  test("leaves a counter that refuses too early alone until its wait is over, and delivers every final", () => {
    let refusals = 0;
    for (let seed = 0; seed < 12; seed++) {
      const counter = fixedCounter(3, 5);
      const lying: PlatformCounter = {
        take(at) {
          const verdict = counter.take(at);
          if (!verdict.ok) return verdict;
          return { ok: true, headers: { ...verdict.headers, limit: 5, remaining: verdict.headers.remaining + 2 } };
        },
      };
      const { refused, ...wrongs } = toWrongs(tryDiscord({ scenario: anything, seed, trip: 0.18 }, () => lying, 1));
      refusals += refused;
      expect(wrongs).toEqual({ overlaps: 0, regressions: 0, impatience: 0, unfinished: 0 });
    }
    expect(refusals).toBeGreaterThan(0);
  });
});
