import { countLimit, fixedLimit, leakyLimit, type OptimumLimit } from "../../test/support/pacing/optimum.ts";
import { fixedCounter, leakyCounter, type PlatformCounter } from "../../test/support/pacing/platform.ts";
import { bursty, mix, type Scenario, several, steady, workday } from "../../test/support/pacing/scenarios.ts";

export type PacingPlatform =
  | { name: "discord"; counter: () => PlatformCounter; counters: 1 | 2 }
  | { name: "slack"; method: "update" | "native" };

export interface PacingRow {
  name: string;
  platform: PacingPlatform;
  scenario: Scenario;
  runs: number;
  /** Mean lag that the policy's own documentation states, seconds; absent where it knows streams only without a way out. */
  mean?: number;
  /** Mean lag of the optimum that knows the future, as documented, seconds. */
  optimum?: number;
  /** Lets the optimum be computed: one reply, and a limit that a few numbers describe. */
  limit?: OptimumLimit;
}

const DISCORD_RUNS = 25;
const SLACK_RUNS = 12;
/** Arrivals within two minutes differ widely by chance from run to run. */
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
    // The programme knows one reply; of several the documented optimum stands alone.
    ...(name.includes(" x ") ? {} : { limit }),
  });
}

const fixed = discord("fixed", SHARED, fixedLimit(5, 5_000));
const leaky = discord("leaky", LEAKY, leakyLimit(5, 5_000));

/** Two rows, for edits alone and for native streams with edits as their way out. The mixes are other runs than those that the constants were found with. */
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
    // Streams have another limit than the one that the optimum was found for.
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
