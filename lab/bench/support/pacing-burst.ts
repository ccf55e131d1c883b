import { createEvenPacer } from "../../../src/pacing/even.ts";
import { type Figures, toFigures, toMean } from "../../pacing/measure.ts";
import { type Scenario, several, severalOfAnyLength } from "../../pacing/scenarios.ts";
import { SLACK_TRIP_MS, trySlack } from "../../pacing/trials.ts";

const BURSTS: ReadonlyArray<{ name: string; scenario: Scenario; runs: number }> = [
  { name: "5 x 400@60", scenario: several(5, 400, 60, 0), runs: 12 },
  { name: "6 x 400@60", scenario: several(6, 400, 60, 0), runs: 12 },
  { name: "5 of any length", scenario: severalOfAnyLength(5), runs: 60 },
  { name: "5 x 1500@30", scenario: several(5, 1500, 30, 0), runs: 12 },
];
/**
 * Gaps between two edits of a reply. They give mean lags like those of other bots. Undefined stands for this bot's
 * policy.
 */
const GAPS_MS = [620, 680, 740, 830, undefined] as const;

export const BURST_HEAD = ["gap between edits", ...BURSTS.map(({ name }) => name)];

/**
 * Measures what it costs to show several edited answers sooner: mean lag / worst final lag / refused calls per reply.
 */
export function runBursts(): string[][] {
  return GAPS_MS.map((gapMs) => [
    gapMs === undefined ? "this policy" : `${(gapMs / 1_000).toFixed(2)} s`,
    ...BURSTS.map(({ scenario, runs }) => describe(runBurst(scenario, runs, gapMs))),
  ]);
}

function runBurst(scenario: Scenario, runs: number, gapMs: number | undefined): Figures {
  const figures = Array.from({ length: runs }, (_, run) => {
    const options = gapMs === undefined ? {} : { pacer: createEvenPacer({ gapMs: 0, replyGapMs: gapMs }) };
    return toFigures(trySlack({ scenario, seed: run + 1, tripMs: SLACK_TRIP_MS, options }, "update").outcomes);
  });
  return toMean(figures);
}

function describe({ mean, worstFinal, refused }: Figures): string {
  return [mean, worstFinal, refused].map((value) => value.toFixed(2)).join("/");
}
