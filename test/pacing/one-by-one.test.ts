import { describe, expect, test } from "vitest";
import { createDiscordBudget, createDiscordShared } from "../../src/pacing/discord-budget.ts";
import { createEvenPacer } from "../../src/pacing/even.ts";
import { createOneByOne } from "../../src/pacing/one-by-one.ts";
import { createPacer, type Pacer } from "../../src/pacing/pacer.ts";
import { toFigures, toMean } from "../support/pacing/measure.ts";
import { fixedCounter, leakyCounter, slidingCounter } from "../support/pacing/platform.ts";
import { several } from "../support/pacing/scenarios.ts";
import { DISCORD_TRIP, NO_WRONGS, toWrongs, tryDiscord } from "../support/pacing/trials.ts";

const OK = { answer: { ok: true }, behind: false } as const;

function startTwo(): { pacer: Pacer; first: number; second: number } {
  const pacer = createOneByOne(createEvenPacer({ gap: 0 }));
  const [first, second] = [pacer.join(0), pacer.join(0)];
  pacer.text(first, 10, 1);
  pacer.text(second, 10, 1);
  return { pacer, first, second };
}

/** Mean lag of five replies at once in one channel over several runs. */
function toLag(create: () => ReturnType<typeof fixedCounter>, wrap: (pacer: Pacer) => Pacer): number {
  const runs = Array.from({ length: 8 }, (_, run) => {
    const pacer = wrap(createPacer(createDiscordBudget(createDiscordShared())));
    const scenario = several(5, 400, 60, 0);
    const trial = { scenario, seed: run + 1, trip: DISCORD_TRIP, options: { pacer } };
    const result = tryDiscord(trial, create, 1);
    expect(toWrongs(result)).toEqual(NO_WRONGS);
    return toFigures(result.outcomes);
  });
  return toMean(runs).mean;
}

describe("calls one by one", () => {
  test("begin when the one before was answered", () => {
    const { pacer } = startTwo();
    const step = pacer.step(2);
    if (step.type !== "send") throw new Error("Nothing was sent.");
    expect(pacer.step(2)).toEqual({ type: "idle" });
    pacer.done(step.reply, OK, 3);
    expect(pacer.step(3)).toMatchObject({ type: "send" });
  });

  test("go on after a reply that left in the middle of its call", () => {
    const { pacer } = startTwo();
    const step = pacer.step(2);
    if (step.type !== "send") throw new Error("Nothing was sent.");
    pacer.leave(step.reply, 2.5);
    expect(pacer.step(2.5)).toEqual({ type: "idle" });
    pacer.done(step.reply, OK, 3);
    expect(pacer.step(3)).toMatchObject({ type: "send" });
  });

  test.each([
    ["fixed", () => fixedCounter(5, 5)],
    ["leaky", () => leakyCounter(5, 5)],
    ["sliding", () => slidingCounter(5, 5)],
  ] as const)("tell a budget with a %s counter its kind when several replies begin at once", (_, create) => {
    expect(toLag(create, createOneByOne)).toBeLessThan(0.9 * toLag(create, (pacer) => pacer));
  });
});
