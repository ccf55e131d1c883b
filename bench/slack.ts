import { toFigures, toMean } from "../test/support/pacing/measure.ts";
import { createRandom } from "../test/support/pacing/random.ts";
import { several } from "../test/support/pacing/scenarios.ts";
import { SLACK_TRIP, trySlack } from "../test/support/pacing/trials.ts";
import { describeMachine, runBench } from "./support/lifecycle.ts";
import { runOnSlack, type SlackRun } from "./support/slack-run.ts";
import { formatTable } from "./support/table.ts";

interface Row {
  name: string;
  count: number;
  isNative: boolean;
  rounds: number;
}

const ROWS: readonly Row[] = [true, false].flatMap((isNative) =>
  [
    { count: 1, rounds: 3 },
    { count: 5, rounds: 2 },
    { count: 20, rounds: 1 },
  ].map(({ count, rounds }) => ({
    name: `${count === 1 ? "one reply" : `${count} at once`}, ${isNative ? "native" : "fallback"}`,
    count,
    isNative,
    rounds,
  })),
);
const VIRTUAL_RUNS = 12;
/** A mean lag further from the one in virtual time than this share is a failure. */
const TOLERANCE = 0.15;
const HEAD = ["400 tokens at 60 a second", "real time", "virtual time", "off", "429s", "final text"];

interface Run {
  row: Row;
  runs: SlackRun[];
}

interface Measured extends Run {
  virtual: number;
}

await runBench(async () => {
  // Each has a workspace of its own; what they have in common is this machine, which is idle most of the time.
  const run = await Promise.all(ROWS.map(measure));
  // Calculated when nothing is measured any more, as it keeps a core busy.
  const measured = run.map((it): Measured => ({ ...it, virtual: toVirtualMean(it.row) }));
  if (measured.some(isOff)) process.exitCode = 1;
  return [
    `Mean lag of a reply behind the model in seconds, through Slack's own client, ${describeMachine()}.`,
    `Round trips of ${SLACK_TRIP} s in the median; the real limits of a workspace; rounds of real time, ${VIRTUAL_RUNS} runs of virtual time.`,
    "",
    formatTable(HEAD, measured.map(toCells)),
    ...measured.flatMap(({ row, runs }) =>
      runs.flatMap(({ violations }) => violations.map((it) => `${row.name}: ${it}`)),
    ),
  ].join("\n");
});

async function measure(row: Row): Promise<Run> {
  const scenario = several(row.count, 400, 60, 0);
  const runs: SlackRun[] = [];
  for (let seed = 1; seed <= row.rounds; seed++) {
    runs.push(await runOnSlack({ replies: scenario(createRandom(seed)), isNative: row.isNative, seed }));
  }
  return { row, runs };
}

function toVirtualMean({ count, isNative }: Row): number {
  const scenario = several(count, 400, 60, 0);
  const method = isNative ? "native" : "update";
  const runs = Array.from({ length: VIRTUAL_RUNS }, (_, run) => {
    return toFigures(trySlack({ scenario, seed: run + 1, trip: SLACK_TRIP }, method).outcomes);
  });
  return toMean(runs).mean;
}

function toRealMean({ runs }: Measured): number {
  return toMean(runs.map(({ figures }) => figures)).mean;
}

function toDeviation(measured: Measured): number {
  return toRealMean(measured) / measured.virtual - 1;
}

function isOff(measured: Measured): boolean {
  const isWrong = measured.runs.some(({ wrong, violations }) => wrong > 0 || violations.length > 0);
  return isWrong || Math.abs(toDeviation(measured)) > TOLERANCE;
}

function toCells(measured: Measured): string[] {
  const { row, runs, virtual } = measured;
  const means = runs.map(({ figures }) => figures.mean).sort((a, b) => a - b);
  const spread = runs.length === 1 ? "" : ` (${format(means.at(0))}-${format(means.at(-1))})`;
  const refused = runs.reduce((sum, { violations }) => sum + violations.length, 0);
  const wrong = runs.reduce((sum, run) => sum + run.wrong, 0);
  return [
    row.name,
    `${format(toRealMean(measured))}${spread}`,
    format(virtual),
    `${Math.round(toDeviation(measured) * 100)} %`,
    String(refused),
    wrong === 0 ? "equal" : `${wrong} wrong`,
  ];
}

function format(seconds = Number.NaN): string {
  return seconds.toFixed(2);
}
