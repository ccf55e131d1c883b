import { countLimit, fixedLimit, leakyLimit, type OptimumLimit } from "../../pacing/optimum.ts";
import { fixedCounter, leakyCounter, type PlatformCounter } from "../../pacing/platform.ts";
import { bursty, mix, type Scenario, several, steady, workday } from "../../pacing/scenarios.ts";

export type PacingPlatform =
  | { name: "discord"; counter: () => PlatformCounter; counters: 1 | 2 }
  | { name: "slack"; method: "update" | "native" };

export interface PacingRow {
  name: string;
  platform: PacingPlatform;
  scenario: Scenario;
  runs: number;
  /** The documented mean lag in seconds. Absent if the documentation covers only streams without a fallback. */
  mean?: number;
  /** The documented mean lag in seconds of an optimal policy, one that knows the whole stream in advance. */
  optimum?: number;
  /** Set if the optimum can be calculated: for a single reply, and a limit with few parameters. */
  limit?: OptimumLimit;
}

const DISCORD_RUNS = 25;
const SLACK_RUNS = 12;
/** These scenarios need more runs, because arrivals within two minutes vary widely. */
const WORKDAY_RUNS = 40;

const SHARED: PacingPlatform = { name: "discord", counter: () => fixedCounter(5, 5_000), counters: 1 };
const LEAKY: PacingPlatform = { name: "discord", counter: () => leakyCounter(5, 5_000), counters: 2 };

const WORKDAY = "20 of 200 to 800";
const short: Scenario = () => [steady(40, 60)];
const usual: Scenario = () => [steady(400, 60)];
const long: Scenario = () => [steady(1500, 30)];
const longest: Scenario = () => [steady(3000, 40)];
const bursts: Scenario = (random) => [bursty(random)];

function discord(kind: string, platform: PacingPlatform, limit: OptimumLimit) {
  return (name: string, scenario: Scenario, mean: number, optimum: number): PacingRow => ({
    name: `Discord ${kind}, ${name}`,
    platform,
    scenario,
    runs: DISCORD_RUNS,
    mean,
    optimum,
    // The optimum can be calculated only for a single reply. For several, the table shows the documented value.
    ...(name.includes(" x ") ? {} : { limit }),
  });
}

const fixed = discord("fixed", SHARED, fixedLimit(5, 5_000));
const leaky = discord("leaky", LEAKY, leakyLimit(5, 5_000));

/**
 * Returns a row for edits, and one for native streams that fall back to edits. The mixes use other runs than those that
 * tuned the constants.
 */
function slack(
  name: string,
  scenario: Scenario,
  means: [update: number, native: number | undefined],
  optimum?: number,
): PacingRow[] {
  const methods = ["update", "native"] as const;
  return methods.map((method, index) => ({
    name: `Slack ${method}, ${name}`,
    platform: { name: "slack", method },
    scenario,
    runs: name === WORKDAY ? WORKDAY_RUNS : SLACK_RUNS,
    ...(means[index] === undefined ? {} : { mean: means[index] }),
    // The documented optimum is for edits. Streams have another limit.
    ...(optimum === undefined || method === "native" ? {} : { optimum }),
    ...(method === "native" || name.includes(" x ") || optimum === undefined ? {} : { limit: countLimit(50) }),
  }));
}

export const DOCUMENTED: readonly PacingRow[] = [
  fixed("40@60", short, 0.22, 0.16),
  fixed("400@60", usual, 0.63, 0.5),
  fixed("1500@30", long, 0.61, 0.58),
  fixed("bursty 600", bursts, 0.33, 0.19),
  fixed("3 x 400@60, 1 s apart", several(3, 400, 60, 1_000), 1.69, 1.13),
  leaky("400@60", usual, 0.42, 0.37),
  leaky("1500@30", long, 0.56, 0.54),
  ...slack("40@60", short, [0.28, 0.28]),
  ...slack("400@60", usual, [0.35, 0.31], 0.19),
  ...slack("1500@30", long, [0.78, 0.45], 0.61),
  ...slack("3000@40", longest, [0.83, 0.47]),
  ...slack("bursty 600", bursts, [0.3, 0.28], 0.16),
  ...slack("3 x 400@60, 1 s apart", several(3, 400, 60, 1_000), [0.45, 0.32]),
  ...slack("5 x 400@60", several(5, 400, 60, 0), [0.56, 0.34], 0.51),
  ...slack("5 x 1500@30, 2 s apart", several(5, 1500, 30, 2_000), [3.65, 1.77], 2.4),
  ...slack("5 x 1500@30 at once", several(5, 1500, 30, 0), [4.03, 2.07]),
  ...slack("400@60 every 6 s, 60 s", several(10, 400, 60, 6_000), [1.05, 0.48]),
  ...slack("400@60 every 6 s, 180 s", several(30, 400, 60, 6_000), [0.92, 0.48]),
  ...slack(WORKDAY, workday(20), [1.86, 0.77]),
  ...slack("mix, 2 a minute", mix(2), [0.67, 0.4]),
  ...slack("mix, 5 a minute", mix(5), [0.86, 0.48]),
  ...slack("mix, 10 a minute", mix(10), [1.3, 0.63]),
  ...slack("mix, 15 a minute", mix(15), [1.87, undefined]),
  ...slack("mix, 20 a minute", mix(20), [2.35, undefined]),
];
