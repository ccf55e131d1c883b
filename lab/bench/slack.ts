import { toFigures, toMean } from "../pacing/measure.ts";
import { createRandom } from "../pacing/random.ts";
import { afterQuestion, type Scenario, several } from "../pacing/scenarios.ts";
import { SLACK_TRIP_MS, trySlack } from "../pacing/trials.ts";
import { describeMachine, runBench } from "./support/lifecycle.ts";
import { runOnSlack, type SlackRun } from "./support/slack-run.ts";
import { formatTable } from "./support/table.ts";

interface Row {
  name: string;
  count: number;
  isNative: boolean;
  rounds: number;
  /** Time since an earlier question in the workspace; absent without one. */
  agoMs?: number | undefined;
  silentMs?: number | undefined;
  tokens: number;
  rate: number;
  /** The best mean lag of other bots in seconds, measured in real time on 2026-11-22. */
  peers?: number | undefined;
}

const USUAL = { tokens: 400, rate: 60 };
const LONG = { tokens: 1500, rate: 30 };
const PEERS = { one: 0.51, five: 0.5, native: 1.44, long: 5.3, fallback: 29 };

/** Rows in which replies stay empty so long that people can press a Stop button. Streams have no such button. */
const SILENT = { rounds: 1, silentMs: 1_500 };
const SILENT_ROWS = [
  { count: 1, ...SILENT, ...USUAL, peers: PEERS.one },
  { count: 5, ...SILENT, ...USUAL, peers: PEERS.five },
  { count: 1, ...SILENT, ...LONG, peers: PEERS.native },
  { count: 5, ...SILENT, ...LONG, peers: PEERS.native },
];

const ROWS: readonly Row[] = [true, false].flatMap((isNative) =>
  [
    ...(isNative ? SILENT_ROWS : []),
    ...[undefined, 2_000, 10_000, 60_000].flatMap((agoMs) => [
      { count: 1, rounds: agoMs === undefined ? 3 : 1, agoMs, ...USUAL, peers: PEERS.one },
      { count: 5, rounds: agoMs === undefined ? 2 : 1, agoMs, ...USUAL, peers: PEERS.five },
    ]),
    { count: 20, rounds: 1, ...USUAL },
    { count: 1, rounds: 1, ...LONG, peers: isNative ? PEERS.native : PEERS.long },
    ...[undefined, 10_000].map((agoMs) => ({
      count: 5,
      rounds: 1,
      agoMs,
      ...LONG,
      peers: isNative ? PEERS.native : PEERS.fallback,
    })),
  ].map((row) => ({ ...row, name: toName(row, isNative), isNative })),
);
const VIRTUAL_RUNS = 12;
/** The bench fails if the measured mean lag differs by more than this share from the mean lag in virtual time. */
const TOLERANCE = 0.15;
const HEAD = [
  "scenario",
  "peers",
  "real time",
  "virtual time",
  "off",
  "p95",
  "final",
  "worst final",
  "429s",
  "final text",
  "taken back",
];
const LIMIT_MS = 170_000;

interface Run {
  row: Row;
  runs: SlackRun[];
}

interface Measured extends Run {
  virtual: number;
}

await runBench(async () => {
  // These rows can run in parallel: each has its own workspace, and the machine is mostly idle.
  const isQuick = ({ agoMs, tokens }: Row) => agoMs === undefined && tokens === USUAL.tokens;
  const quick = await Promise.all(ROWS.filter(isQuick).map(measure));
  const run = [...quick, ...(await Promise.all(ROWS.filter((row) => !isQuick(row)).map(measure)))];
  // Calculate the virtual means after the measurements, because the calculation keeps a core busy.
  const measured = run.map((it): Measured => ({ ...it, virtual: toVirtualMean(it.row) }));
  if (measured.some(isOff)) process.exitCode = 1;
  return [
    `Mean lag of a reply behind the model in seconds, through the service's Slack client, ${describeMachine()}.`,
    `Round trips of ${SLACK_TRIP_MS / 1_000} s in the median; the real limits of a workspace; the rounds are in real time, and ${VIRTUAL_RUNS} runs in virtual time.`,
    "",
    formatTable(HEAD, measured.map(toCells)),
    ...measured.flatMap(({ row, runs }) =>
      runs.flatMap(({ violations, takenBack }) => [
        ...violations.map((it) => `${row.name}: ${it}`),
        ...takenBack.map((it) => `${row.name}: taken back ${it}`),
      ]),
    ),
  ].join("\n");
}, LIMIT_MS);

function toName({ count, agoMs, silentMs, tokens, rate }: Omit<Row, "name" | "isNative">, isNative: boolean): string {
  const replies = count === 1 ? `${tokens}@${rate}` : `${count} x ${tokens}@${rate} at once`;
  const before = agoMs === undefined ? "" : `, asked ${agoMs / 1_000} s before`;
  const silence = silentMs === undefined ? "" : `, no sessions, silent for ${silentMs / 1_000} s`;
  return `${isNative ? "native" : "fallback"}, ${replies}${before}${silence}`;
}

function toReplies({ count, tokens, rate, silentMs = 0 }: Row): Scenario {
  const replies = several(count, tokens, rate, 0);
  return (random) => replies(random).map((arrivals) => arrivals.map((at) => at + silentMs));
}

async function measure(row: Row): Promise<Run> {
  const scenario = toReplies(row);
  const runs: SlackRun[] = [];
  for (let seed = 1; seed <= row.rounds; seed++) {
    runs.push(await runOnSlack({ ...row, replies: scenario(createRandom(seed)), seed }));
  }
  return { row, runs };
}

function toVirtualMean({ agoMs, silentMs, ...row }: Row): number {
  const replies = toReplies({ ...row, silentMs });
  const scenario = agoMs === undefined ? replies : afterQuestion(agoMs, replies);
  const method = row.isNative && silentMs === undefined ? "native" : "update";
  const runs = Array.from({ length: VIRTUAL_RUNS }, (_, run) => {
    const { outcomes } = trySlack({ scenario, seed: run + 1, tripMs: SLACK_TRIP_MS }, method);
    return toFigures(agoMs === undefined ? outcomes : outcomes.slice(1));
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
  const isWrong = measured.runs.some(
    ({ wrong, violations, takenBack }) => wrong + violations.length + takenBack.length > 0,
  );
  return isWrong || Math.abs(toDeviation(measured)) > TOLERANCE;
}

function toCells(measured: Measured): string[] {
  const { row, runs, virtual } = measured;
  const means = runs.map(({ figures }) => figures.mean).sort((a, b) => a - b);
  const spread = runs.length === 1 ? "" : ` (${format(means.at(0))}-${format(means.at(-1))})`;
  const refused = runs.reduce((sum, { violations }) => sum + violations.length, 0);
  const wrong = runs.reduce((sum, run) => sum + run.wrong, 0);
  const figures = toMean(runs.map((run) => run.figures));
  return [
    row.name,
    row.peers === undefined ? "" : format(row.peers),
    `${format(toRealMean(measured))}${spread}`,
    format(virtual),
    `${Math.round(toDeviation(measured) * 100)} %`,
    ...[figures.p95, figures.final, figures.worstFinal].map(format),
    String(refused),
    wrong === 0 ? "equal" : `${wrong} wrong`,
    String(runs.reduce((sum, { takenBack }) => sum + takenBack.length, 0)),
  ];
}

function format(seconds = Number.NaN): string {
  return seconds.toFixed(2);
}
