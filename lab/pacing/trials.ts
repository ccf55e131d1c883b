import { createDiscordBudget, createDiscordShared, type DiscordShared } from "../../adapters/discord/write/pace.ts";
import { createSlackBudget, createSlackPacer, type SlackMethod } from "../../adapters/slack/write/pace.ts";
import { createPacer } from "../../src/pacing/pacer.ts";
import type { Outcome } from "./measure.ts";
import type { PlatformCounter } from "./platform.ts";
import { discordPlatform, slackPlatform } from "./platform.ts";
import { createRandom, type Random, toRoundTrip } from "./random.ts";
import type { Scenario } from "./scenarios.ts";
import type { Faults, SimulationOptions } from "./simulate.ts";
import { simulate } from "./simulate.ts";

/** Median round trips for the figures in the documentation. */
export const DISCORD_TRIP_MS = 180;
export const SLACK_TRIP_MS = 250;

export interface Trial {
  scenario: Scenario;
  seed: number;
  tripMs: number;
  options?: Partial<SimulationOptions>;
}

export interface TrialResult {
  outcomes: Outcome[];
  faults: Faults;
}

/** Runs a scenario in a Discord channel with a counter of this kind. */
export function tryDiscord(
  { scenario, seed, tripMs, options }: Trial,
  create: () => PlatformCounter,
  counters: 1 | 2,
  shared: DiscordShared = createDiscordShared(),
): TrialResult {
  const random = createRandom(seed);
  return simulate({
    ...toCommon(scenario, random, tripMs),
    pacer: createPacer(createDiscordBudget(shared)),
    platform: discordPlatform(create, counters),
    room: "channel",
    ...options,
  });
}

/**
 * Runs a scenario in a Slack workspace. With `native`, it uses streams while their limit permits, and updates
 * otherwise.
 */
export function trySlack({ scenario, seed, tripMs, options }: Trial, method: SlackMethod | "native"): TrialResult {
  const random = createRandom(seed);
  return simulate({
    ...toCommon(scenario, random, tripMs),
    pacer: method === "native" ? createSlackPacer() : createPacer(createSlackBudget(method)),
    platform: slackPlatform(method),
    needsStop: method !== "update",
    ...options,
  });
}

/**
 * Counts everything that must never happen. If all numbers are 0, no call got a 429, and readers saw every text
 * completely, in order and in time.
 */
export function toWrongs({ outcomes, faults }: TrialResult): Faults & { refused: number } {
  return { ...faults, refused: outcomes.reduce((sum, { refused }) => sum + refused, 0) };
}

export const NO_WRONGS: ReturnType<typeof toWrongs> = {
  refused: 0,
  overlaps: 0,
  regressions: 0,
  impatience: 0,
  unfinished: 0,
};

function toCommon(scenario: Scenario, random: Random, tripMs: number) {
  return { replies: scenario(random), random, roundTrip: () => toRoundTrip(random, tripMs) };
}
