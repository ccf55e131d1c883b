import type { ThreadMode } from "../../adapters/discord/options.ts";
import { createDiscordPace } from "../../adapters/discord/write/pace.ts";
import type { CounterSettings, LimitSettings } from "../discord-sim/limits.ts";
import { type Figures, toFigures, toMean } from "../pacing/measure.ts";
import { fixedCounter, leakyCounter, type PlatformCounter, slidingCounter } from "../pacing/platform.ts";
import { createRandom } from "../pacing/random.ts";
import { several } from "../pacing/scenarios.ts";
import { DISCORD_TRIP_MS, tryDiscord } from "../pacing/trials.ts";
import { type DiscordRun, runOnDiscord } from "./support/discord-run.ts";
import { describeMachine, runBench } from "./support/lifecycle.ts";
import { describeSummary, formatNumber, summarize } from "./support/statistics.ts";
import { formatTable } from "./support/table.ts";

/** One of Discord's observed ways to count calls, with its settings for the simulator and for virtual time. */
interface Kind {
  name: CounterSettings["kind"];
  postsAndEdits: LimitSettings["postsAndEdits"];
  counters: 1 | 2;
  create(): PlatformCounter;
}

interface Row {
  name: string;
  kind: Kind;
  count: number;
  threads: ThreadMode;
  tokens: number;
  /** Tokens per second. */
  rate: number;
  rounds: number;
}

interface Measured {
  row: Row;
  runs: DiscordRun[];
  virtual: Figures;
}

const LIMIT = 5;
const WINDOW_MS = 5_000;
const ROUNDS = 5;
const VIRTUAL_RUNS = 25;
/** The bench fails if the measured mean lag differs by more than this share from the mean lag in virtual time. */
const TOLERANCE = 0.15;
/** Pause between the starts of two rows, so that they do not slow each other down. */
const APART_MS = 400;

const KINDS: readonly Kind[] = [
  { name: "fixed", postsAndEdits: "one-bucket", counters: 1, create: () => fixedCounter(LIMIT, WINDOW_MS) },
  { name: "leaky", postsAndEdits: "one-hash-two-counters", counters: 2, create: () => leakyCounter(LIMIT, WINDOW_MS) },
  { name: "sliding", postsAndEdits: "one-bucket", counters: 1, create: () => slidingCounter(LIMIT, WINDOW_MS) },
];
const SHORT = { tokens: 400, rate: 60, rounds: ROUNDS };
/** An answer of three or four messages. */
const LONG = { tokens: 1_500, rate: 30, rounds: 1 };
const ROWS: readonly Row[] = KINDS.flatMap((kind) => [
  { name: `${kind.name}, one reply`, kind, count: 1, threads: "off" as const, ...SHORT },
  { name: `${kind.name}, 5 at once, threads off`, kind, count: 5, threads: "off" as const, ...SHORT },
  { name: `${kind.name}, 5 at once, threads auto`, kind, count: 5, threads: "auto" as const, ...SHORT },
  { name: `${kind.name}, one of 1,500@30`, kind, count: 1, threads: "off" as const, ...LONG },
]);
const HEAD = [
  "400 tokens at 60 a second",
  "mean",
  "virtual",
  "ratio",
  "p95",
  "final",
  "worst final",
  "freeze",
  "calls",
  "429s",
  "stale",
  "text",
  "taken back",
];

await runBench(async () => {
  const started = ROWS.map((row, index) => measure(row, index * APART_MS));
  const runs = await Promise.all(started);
  // Calculate the virtual means after the measurements, because the calculation keeps a core busy.
  const measured = runs.map(
    (one, index): Measured => ({ row: ROWS[index] as Row, runs: one, virtual: toVirtual(ROWS[index] as Row) }),
  );
  if (measured.some(isOff)) process.exitCode = 1;
  return [
    `Lag of replies behind the model in seconds, through discord.js and the whole adapter, ${describeMachine()}.`,
    `Round trips of ${DISCORD_TRIP_MS / 1_000} s in the median, ${LIMIT} calls per ${WINDOW_MS / 1_000} s; the median of ${ROUNDS} runs in real time (min–max), one run for long replies; the mean of ${VIRTUAL_RUNS} runs in virtual time.`,
    "",
    formatTable(HEAD, measured.map(toCells)),
    ...measured.flatMap(({ row, runs }) =>
      runs.flatMap(({ violations, takenBack }) => [
        ...violations.map((it) => `${row.name}: ${it}`),
        ...takenBack.map((it) => `${row.name}: taken back ${it}`),
      ]),
    ),
  ].join("\n");
});

async function measure({ kind, count, threads, tokens, rate, rounds }: Row, afterMs: number): Promise<DiscordRun[]> {
  await new Promise((resolve) => setTimeout(resolve, afterMs));
  const messages: CounterSettings = { kind: kind.name, limit: LIMIT, windowMs: WINDOW_MS };
  const limits = { messages, postsAndEdits: kind.postsAndEdits };
  const scenario = several(count, tokens, rate, 0);
  const runs: DiscordRun[] = [];
  for (let seed = 1; seed <= rounds; seed++) {
    runs.push(await runOnDiscord({ replies: scenario(createRandom(seed)), threads, limits, seed }));
  }
  return runs;
}

/** If each reply has its own thread and counter, several replies behave like one. */
function toVirtual({ kind, count, threads, tokens, rate }: Row): Figures {
  const scenario = several(threads === "auto" ? 1 : count, tokens, rate, 0);
  return toMean(
    Array.from({ length: VIRTUAL_RUNS }, (_, run) => {
      const options = { pacer: createDiscordPace().channel("discord:channel").createPacer() };
      const trial = { scenario, seed: run + 1, tripMs: DISCORD_TRIP_MS, options };
      return toFigures(tryDiscord(trial, kind.create, kind.counters).outcomes);
    }),
  );
}

function toRatio({ runs, virtual }: Measured): number {
  return summarize(runs.map(({ figures }) => figures.mean)).median / virtual.mean;
}

function isOff(measured: Measured): boolean {
  const isWrong = measured.runs.some(
    ({ wrong, violations, takenBack }) => wrong + violations.length + takenBack.length > 0,
  );
  return isWrong || Math.abs(toRatio(measured) - 1) > TOLERANCE;
}

function toCells(measured: Measured): string[] {
  const { row, runs, virtual } = measured;
  const spread = (pick: (figures: Figures) => number) => summarize(runs.map(({ figures }) => pick(figures)));
  const sum = (pick: (run: DiscordRun) => number) => runs.reduce((all, run) => all + pick(run), 0);
  const wrong = sum((run) => run.wrong);
  return [
    row.name,
    describeSummary(
      spread(({ mean }) => mean),
      2,
    ),
    formatNumber(virtual.mean, 2),
    formatNumber(toRatio(measured), 2),
    formatNumber(spread(({ p95 }) => p95).median, 2),
    formatNumber(spread(({ final }) => final).median, 2),
    formatNumber(Math.max(...runs.map(({ figures }) => figures.worstFinal)), 2),
    formatNumber(spread(({ freeze }) => freeze).median, 2),
    formatNumber(spread(({ calls }) => calls).median, 1),
    String(sum((run) => run.refused)),
    String(sum((run) => run.stale)),
    wrong === 0 ? "equal" : `${wrong} wrong`,
    String(sum(({ takenBack }) => takenBack.length)),
  ];
}
