import { expect, test } from "vitest";
import { createDiscordPace } from "../../adapters/discord/write/pace.ts";
import { createSlackBudget, createSlackPacer } from "../../adapters/slack/write/pace.ts";
import { fixedCounter, leakyCounter, slidingCounter } from "../../lab/pacing/platform.ts";
import { type Scenario, several } from "../../lab/pacing/scenarios.ts";
import { DISCORD_TRIP_MS, SLACK_TRIP_MS, type TrialResult, tryDiscord, trySlack } from "../../lab/pacing/trials.ts";
import { createPacer } from "../../src/pacing/pacer.ts";
import type { JoinOptions, KnownCall, Pacer } from "../../src/port/pace.ts";

/** The time between a process's death and its successor's first call. */
const DEAD_MS = 3_000;

/**
 * The pacer of a process that is killed at the given time, then the pacer of another process that knows the first one's
 * calls.
 */
function takenOver(create: () => Pacer, killedAt: number, isTold = true): Pacer {
  const first = create();
  const calls: KnownCall[] = [];
  const replies = new Map<number, { options: JoinOptions; units: number; ended: boolean; number: number }>();
  let second: Pacer | undefined;

  function begin(now: number): Pacer {
    const pacer = create();
    if (isTold) pacer.recall?.(calls);
    for (const reply of replies.values()) {
      // A stream ends with the process that started it. The next process updates the stream's message instead.
      reply.number = pacer.join({ ...reply.options, first: "edit", isFallback: true });
      pacer.text(reply.number, reply.units, now);
      if (reply.ended) pacer.end(reply.number);
    }
    return pacer;
  }

  const outer = (own: number) => [...replies].find(([, { number }]) => number === own)?.[0] ?? 0;
  return {
    join(options = {}) {
      const number = first.join(options);
      replies.set(number, { options, units: 0, ended: false, number });
      return number;
    },
    text(number, units, now) {
      const reply = replies.get(number);
      if (reply === undefined) return;
      reply.units += units;
      if (now < killedAt) first.text(number, units, now);
      else second?.text(reply.number, units, now);
    },
    end(number) {
      const reply = replies.get(number);
      if (reply === undefined) return;
      reply.ended = true;
      if (second === undefined) first.end(number);
      else second.end(reply.number);
    },
    leave(number) {
      const reply = replies.get(number);
      replies.delete(number);
      if (second === undefined) first.leave(number);
      else if (reply !== undefined) second.leave(reply.number);
    },
    step(now) {
      if (now >= killedAt && now < killedAt + DEAD_MS) return { type: "wait", until: killedAt + DEAD_MS };
      if (now < killedAt) {
        const step = first.step(now);
        if (step.type === "wait" && step.until > killedAt) return { type: "wait", until: killedAt };
        if (step.type === "send") {
          const room = replies.get(step.reply)?.options.room ?? "";
          calls.push({ kind: step.kind, room, isFallback: step.isFallback === true, sentAt: now });
        }
        return step.type === "idle" ? { type: "wait", until: killedAt } : step;
      }
      second ??= begin(now);
      const step = second.step(now);
      return step.type === "send" ? { ...step, reply: outer(step.reply) } : step;
    },
    done(number, written, now) {
      if (now < killedAt) first.done(number, written, now);
      else second?.done(replies.get(number)?.number ?? 0, written, now);
    },
    keepUntil: () => 0,
  };
}

const toRefused = ({ outcomes }: TrialResult) => outcomes.reduce((sum, { refused }) => sum + refused, 0);
const SEEDS = [1, 2, 3, 4, 5, 6];
const LONG: Scenario = several(5, 1_500, 30, 0);

const SLACK = [
  { name: "native streams", method: "native", create: createSlackPacer },
  { name: "messages that are updated", method: "update", create: () => createPacer(createSlackBudget("update")) },
] as const;

for (const { name, method, create } of SLACK) {
  const refusedWith = (pacerOf: () => Pacer) =>
    SEEDS.map((seed) =>
      toRefused(trySlack({ scenario: LONG, seed, tripMs: SLACK_TRIP_MS, options: { pacer: pacerOf() } }, method)),
    );

  test.for([4_000, 9_000, 25_000])(`Slack does not rate-limit a takeover of ${name} after %i ms`, (killedAt) => {
    expect(refusedWith(() => takenOver(create, killedAt))).toEqual(SEEDS.map(() => 0));
  });
}

test("Slack rate-limits a takeover that does not know the earlier calls", () => {
  const pacer = takenOver(() => createPacer(createSlackBudget("update")), 25_000, false);
  const options = { pacer };
  expect(toRefused(trySlack({ scenario: LONG, seed: 1, tripMs: SLACK_TRIP_MS, options }, "update"))).toBeGreaterThan(0);
});

const COUNTERS = [
  { name: "fixed", create: () => fixedCounter(5, 5_000), counters: 1 },
  { name: "leaky", create: () => leakyCounter(5, 5_000), counters: 2 },
  { name: "sliding", create: () => slidingCounter(5, 5_000), counters: 1 },
] as const;

test.for(COUNTERS)("Discord's $name counter does not rate-limit a takeover", ({ create, counters }) => {
  for (const killedAt of [2_000, 4_500, 8_000]) {
    const refused = SEEDS.map((seed) => {
      const options = {
        pacer: takenOver(() => createDiscordPace().channel("discord:channel").createPacer(), killedAt),
      };
      return toRefused(tryDiscord({ scenario: LONG, seed, tripMs: DISCORD_TRIP_MS, options }, create, counters));
    });
    expect(refused).toEqual(SEEDS.map(() => 0));
  }
});
