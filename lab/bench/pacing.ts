import { type Figures, toFigures, toMean } from "../pacing/measure.ts";
import { findOptimum } from "../pacing/optimum.ts";
import { discordPlatform, slackPlatform } from "../pacing/platform.ts";
import { createRandom, toRoundTrip } from "../pacing/random.ts";
import type { Faults } from "../pacing/simulate.ts";
import { simulateTimers } from "../pacing/timers.ts";
import { DISCORD_TRIP_MS, SLACK_TRIP_MS, type TrialResult, toWrongs, tryDiscord, trySlack } from "../pacing/trials.ts";
import { describeMachine, runBench } from "./support/lifecycle.ts";
import { BURST_HEAD, runBursts } from "./support/pacing-burst.ts";
import { RACE_HEAD, race } from "./support/pacing-race.ts";
import { DOCUMENTED, type PacingRow } from "./support/pacing-rows.ts";
import { formatTable } from "./support/table.ts";

const HEAD = [
  "scenario",
  "0.5 s timer",
  "1.0 s throttle",
  "this policy",
  "worst final",
  "runs",
  "documented",
  "off",
  "optimum",
  "doc.",
];
/** The summary names rows that differ from the documented mean by more than this share. */
const TOLERANCE = 0.1;
/** Only this many runs calculate the optimum. */
const OPTIMUM_RUNS = 3;
const LIMIT_MS = 290_000;

interface Measured {
  row: PacingRow;
  policy: Figures;
  runs: Figures[];
  wrongs: number;
  cells: string[];
}

await runBench(async () => {
  const measured = DOCUMENTED.map(measure);
  const raced = race();
  if (raced.wrongs > 0) process.exitCode = 1;
  return [
    `Lag of a reply behind the model, virtual time, ${describeMachine()}.`,
    "Cells: mean / p95 / final lag / worst freeze in seconds, calls and 429s per reply; the mean of the runs.",
    "Worst final: the longest final lag of any reply in any run, seconds.",
    "",
    formatTable(
      HEAD,
      measured.map(({ cells }) => cells),
    ),
    "",
    describeVerdict(measured),
    "",
    "Compared with other bots, fresh and after an earlier short answer. Cells: mean / p95 / final lag / worst final in seconds.",
    "Slack as streams and as updates; Discord with a fixed window of 5 calls in 5 s, simultaneous answers in threads.",
    "Peers: the best mean of other bots, measured in real time on 2026-11-22.",
    "",
    formatTable(RACE_HEAD, raced.cells),
    "",
    `${raced.wrongs} refused, overlapping, stale or early calls.`,
    "",
    "Simultaneous edited answers on Slack, with an even gap between edits and with this policy.",
    "Cells: mean lag / worst final in seconds, and 429s per reply.",
    "",
    formatTable(BURST_HEAD, runBursts()),
  ].join("\n");
}, LIMIT_MS);

function measure(row: PacingRow): Measured {
  const results = Array.from({ length: row.runs }, (_, run) => runPolicy(row, run + 1));
  const runs = results.map(({ outcomes }) => toFigures(outcomes));
  const policy = toMean(runs);
  const wrongs = results.reduce((sum, result) => sum + countWrongs(toWrongs(result)), 0);
  const means = runs.map(({ mean }) => mean).sort((a, b) => a - b);
  const cells = [
    row.name,
    describeTimers(row, 500),
    describeTimers(row, 1_000),
    describeFigures(policy),
    format(policy.worstFinal),
    `${format(means.at(0))}-${format(means.at(-1))}`,
    format(row.mean),
    row.mean === undefined ? "" : `${Math.round(toDeviation(policy, row) * 100)} %`,
    describeOptimum(row),
    row.optimum === undefined ? "" : format(row.optimum),
  ];
  return { row, policy, runs, wrongs, cells };
}

function runPolicy({ platform, scenario }: PacingRow, seed: number): TrialResult {
  if (platform.name === "discord") {
    return tryDiscord({ scenario, seed, tripMs: DISCORD_TRIP_MS }, platform.counter, platform.counters);
  }
  return trySlack({ scenario, seed, tripMs: SLACK_TRIP_MS }, platform.method);
}

/** Returns "" for native streams, because other bots do not pace these. */
function describeTimers(row: PacingRow, intervalMs: number): string {
  const isStream = row.platform.name === "slack" && row.platform.method === "native";
  return isStream ? "" : describeFigures(runTimers(row, intervalMs));
}

/**
 * Simulates one timer per message, like other bots: an edit every half second after a placeholder, or every second
 * after the first text.
 */
function runTimers({ platform, scenario, runs }: PacingRow, intervalMs: number): Figures {
  const figures = Array.from({ length: runs }, (_, run) => {
    const random = createRandom(run + 1);
    const isDiscord = platform.name === "discord";
    const outcomes = simulateTimers({
      intervalMs,
      hasPlaceholder: intervalMs < 1_000,
      platform: isDiscord ? discordPlatform(platform.counter, platform.counters) : slackPlatform("update"),
      replies: scenario(random),
      random,
      roundTrip: () => toRoundTrip(random, isDiscord ? DISCORD_TRIP_MS : SLACK_TRIP_MS),
      isQueued: isDiscord,
    });
    return toFigures(outcomes);
  });
  return toMean(figures);
}

function describeOptimum({ platform, scenario, limit }: PacingRow): string {
  if (limit === undefined) return "";
  const tripMs = platform.name === "discord" ? DISCORD_TRIP_MS : SLACK_TRIP_MS;
  const lags = Array.from({ length: OPTIMUM_RUNS }, (_, run) => {
    const [arrivals = []] = scenario(createRandom(run + 1));
    return findOptimum(arrivals, limit, tripMs);
  });
  return format(lags.reduce((sum, lag) => sum + lag, 0) / lags.length / 1_000);
}

function describeVerdict(measured: readonly Measured[]): string {
  const off = measured.filter(({ policy, row }) => Math.abs(toDeviation(policy, row)) > TOLERANCE);
  const wrongs = measured.reduce((sum, one) => sum + one.wrongs, 0);
  const lost = measured.reduce((sum, { runs }) => sum + runs.reduce((all, run) => all + run.lost, 0), 0);
  // If the policy exceeds a limit or never shows some text, the figures are worthless.
  if (wrongs + lost > 0) process.exitCode = 1;
  const documented = measured.filter(({ row }) => row.mean !== undefined).length;
  const within = `${documented - off.length} of ${documented} means are within 10 % of the documented ones`;
  const named = off.length === 0 ? "" : `; not ${off.map(({ row }) => row.name).join(", ")}`;
  return `${within}${named}.\nThis policy: ${wrongs} refused, overlapping, stale or early calls; ${lost} tokens never shown.`;
}

function countWrongs({ refused, overlaps, regressions, impatience, unfinished }: Faults & { refused: number }): number {
  return refused + overlaps + regressions + impatience + unfinished;
}

/** 0 if the documentation has no mean for the row. */
function toDeviation({ mean }: Figures, row: PacingRow): number {
  return row.mean === undefined ? 0 : mean / row.mean - 1;
}

function describeFigures({ mean, p95, final, freeze, calls, refused }: Figures): string {
  return [mean, p95, final, freeze]
    .map(format)
    .concat([calls.toFixed(0), format(refused)])
    .join("/");
}

function format(value: number | undefined): string {
  if (value === undefined) return "";
  return value < 10 ? value.toFixed(2) : value.toFixed(1);
}
