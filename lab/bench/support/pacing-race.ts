import { type Figures, toFigures, toMean } from "../../pacing/measure.ts";
import { fixedCounter } from "../../pacing/platform.ts";
import { createRandom } from "../../pacing/random.ts";
import { afterQuestion, bursty, type Scenario, several, steady, withPause } from "../../pacing/scenarios.ts";
import {
  DISCORD_TRIP_MS,
  NO_WRONGS,
  SLACK_TRIP_MS,
  type TrialResult,
  toWrongs,
  tryDiscord,
  trySlack,
} from "../../pacing/trials.ts";

const METHODS = ["native", "update", "discord"] as const;
type Method = (typeof METHODS)[number];

interface Race {
  name: string;
  scenario: Scenario;
  /**
   * True if all replies are in one channel, so that Slack counts their posts together. On Discord, each reply still has
   * its own thread and counter.
   */
  isOneRoom?: boolean;
  /**
   * The best mean lag of other bots in seconds, measured in real time on 2026-11-22 with one upstream and one simulator
   * with the documented limits. Only complete replies count, even if some of their calls were refused. Absent if not
   * measured.
   */
  peers?: Record<Method, number>;
}

const RACES: readonly Race[] = [
  { name: "40@60", scenario: () => [steady(40, 60)], peers: { native: 0.33, update: 0.33, discord: 0.35 } },
  { name: "400@60", scenario: () => [steady(400, 60)], peers: { native: 0.51, update: 0.51, discord: 0.74 } },
  { name: "400@60, a tool's pause", scenario: withPause, peers: { native: 0.5, update: 0.5, discord: 1.26 } },
  { name: "bursty 600", scenario: (random) => [bursty(random)], peers: { native: 0.44, update: 0.44, discord: 1.92 } },
  { name: "1500@30", scenario: () => [steady(1500, 30)], peers: { native: 1.44, update: 5.3, discord: 0.75 } },
  {
    name: "3 x 400@60 in one channel, 1 s apart",
    scenario: several(3, 400, 60, 1_000),
    isOneRoom: true,
    peers: { native: 0.51, update: 0.51, discord: 0.84 },
  },
  { name: "5 x 400@60 at once", scenario: several(5, 400, 60, 0), peers: { native: 0.5, update: 0.5, discord: 0.76 } },
  { name: "5 x 400@30 at once", scenario: several(5, 400, 30, 0) },
  {
    name: "400@60 every 6 s, 60 s",
    scenario: several(10, 400, 60, 6_000),
    peers: { native: 0.79, update: 4.1, discord: 0.84 },
  },
  {
    name: "5 x 1500@30 at once",
    scenario: several(5, 1500, 30, 0),
    peers: { native: 1.44, update: 29, discord: 0.81 },
  },
];
/** Time since an earlier question in the workspace; undefined without one. */
const AGO_MS = [undefined, 2_000, 10_000, 60_000] as const;
const RUNS = 6;

export const RACE_HEAD = [
  "scenario",
  "peers",
  "fresh",
  ...AGO_MS.slice(1).map((agoMs) => `asked ${(agoMs ?? 0) / 1_000} s before`),
];

/**
 * Runs each scenario in a fresh workspace and after an earlier question: mean / p95 / final lag / worst final lag.
 * `wrongs` is the total number of errors.
 */
export function race(): { cells: string[][]; wrongs: number } {
  let wrongs = 0;
  const cells = METHODS.flatMap((method) =>
    RACES.map((one) => {
      const measured = AGO_MS.map((agoMs) => {
        const runs = Array.from({ length: RUNS }, (_, run) => runOne(one, method, agoMs, run + 1));
        wrongs += runs.reduce((sum, run) => sum + run.wrongs, 0);
        return describe(toMean(runs.map(({ figures }) => figures)));
      });
      return [`${method}, ${one.name}`, one.peers?.[method].toFixed(2) ?? "", ...measured];
    }),
  );
  return { cells, wrongs };
}

function runOne(one: Race, method: Method, agoMs: number | undefined, seed: number) {
  const results = method === "discord" ? runOnDiscord(one, agoMs, seed) : [runOnSlack(one, method, agoMs, seed)];
  const kinds = Object.keys(NO_WRONGS) as Array<keyof typeof NO_WRONGS>;
  const wrongs = results.flatMap((result) => kinds.map((kind) => toWrongs(result)[kind]));
  return {
    figures: toFigures(results.flatMap(({ outcomes }) => (agoMs === undefined ? outcomes : outcomes.slice(1)))),
    wrongs: wrongs.reduce((sum, count) => sum + count, 0),
  };
}

function runOnSlack(
  { scenario, isOneRoom }: Race,
  method: Exclude<Method, "discord">,
  agoMs: number | undefined,
  seed: number,
): TrialResult {
  const options = isOneRoom === true ? { room: "channel" } : {};
  return trySlack({ scenario: toAsked(agoMs, scenario), seed, tripMs: SLACK_TRIP_MS, options }, method);
}

/**
 * The earlier question is in the same channel. Answers that grow at the same time have threads, each with its own
 * counter.
 */
function runOnDiscord({ scenario }: Race, agoMs: number | undefined, seed: number): TrialResult[] {
  return scenario(createRandom(seed)).map((arrivals, index) => {
    const trial = { scenario: toAsked(agoMs, () => [arrivals]), seed: 100 * index + seed, tripMs: DISCORD_TRIP_MS };
    return tryDiscord(trial, () => fixedCounter(5, 5_000), 1);
  });
}

function toAsked(agoMs: number | undefined, scenario: Scenario): Scenario {
  return agoMs === undefined ? scenario : afterQuestion(agoMs, scenario);
}

function describe({ mean, p95, final, worstFinal }: Figures): string {
  return [mean, p95, final, worstFinal].map((value) => value.toFixed(2)).join("/");
}
