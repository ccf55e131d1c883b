import { type Figures, toFigures, toMean } from "../../test/support/pacing/measure.ts";
import {
  afterQuestion,
  bursty,
  type Scenario,
  several,
  steady,
  withPause,
} from "../../test/support/pacing/scenarios.ts";
import { NO_WRONGS, SLACK_TRIP_MS, toWrongs, trySlack } from "../../test/support/pacing/trials.ts";

type Method = "native" | "update";

interface Race {
  name: string;
  scenario: Scenario;
  /** All replies in one channel, where posts are counted together. */
  isOneRoom?: boolean;
  /**
   * The best mean lag of other bots, seconds: raced in real time on 2026-11-22, on one upstream and one simulated Slack
   * with its documented limits; whole replies only, whatever was refused meanwhile. Absent where none was raced.
   */
  peers?: Record<Method, number>;
}

const RACES: readonly Race[] = [
  { name: "40@60", scenario: () => [steady(40, 60)], peers: { native: 0.33, update: 0.33 } },
  { name: "400@60", scenario: () => [steady(400, 60)], peers: { native: 0.51, update: 0.51 } },
  { name: "400@60, a tool's pause", scenario: withPause, peers: { native: 0.5, update: 0.5 } },
  { name: "bursty 600", scenario: (random) => [bursty(random)], peers: { native: 0.44, update: 0.44 } },
  { name: "1500@30", scenario: () => [steady(1500, 30)], peers: { native: 1.44, update: 5.3 } },
  {
    name: "3 x 400@60 in one channel, 1 s apart",
    scenario: several(3, 400, 60, 1_000),
    isOneRoom: true,
    peers: { native: 0.51, update: 0.51 },
  },
  { name: "5 x 400@60 at once", scenario: several(5, 400, 60, 0), peers: { native: 0.5, update: 0.5 } },
  { name: "5 x 400@30 at once", scenario: several(5, 400, 30, 0) },
  { name: "400@60 every 6 s, 60 s", scenario: several(10, 400, 60, 6_000), peers: { native: 0.79, update: 4.1 } },
  { name: "5 x 1500@30 at once", scenario: several(5, 1500, 30, 0), peers: { native: 1.44, update: 29 } },
];
/** Time since one question before; undefined in a workspace where nobody asked anything. */
const AGO_MS = [undefined, 2_000, 10_000, 60_000] as const;
const RUNS = 6;

export const RACE_HEAD = [
  "scenario",
  "peers",
  "fresh",
  ...AGO_MS.slice(1).map((agoMs) => `asked ${(agoMs ?? 0) / 1_000} s before`),
];

/** Each scenario fresh and after an earlier question: mean / p95 / final lag / worst final. And what went wrong, added up. */
export function race(): { cells: string[][]; wrongs: number } {
  let wrongs = 0;
  const cells = (["native", "update"] as const).flatMap((method) =>
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

function runOne({ scenario, isOneRoom }: Race, method: Method, agoMs: number | undefined, seed: number) {
  const result = trySlack(
    {
      scenario: agoMs === undefined ? scenario : afterQuestion(agoMs, scenario),
      seed,
      tripMs: SLACK_TRIP_MS,
      options: isOneRoom === true ? { room: "channel" } : {},
    },
    method,
  );
  const wrongs = toWrongs(result);
  const kinds = Object.keys(NO_WRONGS) as Array<keyof typeof NO_WRONGS>;
  return {
    figures: toFigures(agoMs === undefined ? result.outcomes : result.outcomes.slice(1)),
    wrongs: kinds.reduce((sum, kind) => sum + wrongs[kind], 0),
  };
}

function describe({ mean, p95, final, worstFinal }: Figures): string {
  return [mean, p95, final, worstFinal].map((value) => value.toFixed(2)).join("/");
}
