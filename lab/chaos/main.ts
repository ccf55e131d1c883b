import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { describeMachine } from "../bench/support/lifecycle.ts";
import { findGaps, type Gap } from "./gaps.ts";
import { COLUMNS, judge, type Verdict } from "./judge.ts";
import { describePlan, describeRoles, type Plan, type Platform, planRun } from "./plan.ts";
import type { Record } from "./record.ts";
import { runPlan } from "./run.ts";
import { tellStory } from "./story.ts";

const USAGE =
  "Usage: npm run chaos -- --seed 1 --turns 200 --platform slack|discord [--processes 3] [--roles] [--alone] [--plan] [--verbose] [--logs folder]";
const MAX_STORIES = 10;

async function main(args: string[]): Promise<void> {
  const { plan, isShown, isVerbose, logs } = readOptions(args);
  if (isShown) return print(describePlan(plan));
  const startMs = performance.now();
  const onNote = ({ what }: { what: string }) =>
    process.stderr.write(`${((performance.now() - startMs) / 1_000).toFixed(2).padStart(8)}  ${what}\n`);
  const record = await runPlan(plan, { ...(isVerbose && { onNote }), hasDetails: logs !== undefined });
  if (logs !== undefined) await keepLogs(record, logs);
  const verdict = judge(record);
  print(describe(record, verdict, (performance.now() - startMs) / 1_000));
  if (isVerbose) print(tellLongest(findGaps(record), record));
  if (verdict.findings.length > 0) process.exitCode = 1;
}

/** Throws a readable error for wrong arguments. */
function readOptions(args: string[]): { plan: Plan; isShown: boolean; isVerbose: boolean; logs: string | undefined } {
  const { values } = parseArgs({
    args,
    options: {
      seed: { type: "string", default: "1" },
      turns: { type: "string", default: "200" },
      platform: { type: "string", default: "slack" },
      processes: { type: "string" },
      roles: { type: "boolean", default: false },
      alone: { type: "boolean", default: false },
      plan: { type: "boolean", default: false },
      verbose: { type: "boolean", default: false },
      logs: { type: "string" },
    },
  });
  const { platform } = values;
  if (!isPlatform(platform)) throw new Error(`Chaos has no platform "${platform}". ${USAGE}`);
  const hasRoles = values.roles;
  const counts = { ...values, processes: values.processes ?? (hasRoles ? "5" : "3") };
  const [seed, turns, processes] = (["seed", "turns", "processes"] as const).map((name) =>
    readCount(name, counts[name]),
  );
  if (seed === undefined || !turns || !processes)
    throw new Error(`Nothing to do: --turns and --processes must be at least 1. ${USAGE}`);
  if (values.alone && (hasRoles || values.processes !== undefined))
    throw new Error(`--alone runs one process: leave out --roles and --processes. ${USAGE}`);
  if (hasRoles && processes < 2) throw new Error(`--roles needs at least two processes. ${USAGE}`);
  return {
    plan: planRun({ seed, turns, platform, processes, hasRoles, isAlone: values.alone }),
    isShown: values.plan,
    isVerbose: values.verbose,
    logs: values.logs,
  };
}

/** Writes a log file for each life of a process, and one for the events of the run. */
async function keepLogs({ lives, notes }: Record, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const files: Array<[name: string, lines: readonly string[]]> = [
    ...lives.map(({ name, lines }): [string, readonly string[]] => [name, lines]),
    ["notes", notes.map(({ atMs, what }) => `${new Date(atMs).toISOString()} ${what}`)],
  ];
  for (const [name, lines] of files) await writeFile(join(folder, `${name}.log`), `${lines.join("\n")}\n`);
}

function isPlatform(name: string): name is Platform {
  return name === "slack" || name === "discord";
}

function readCount(name: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new Error(`--${name} must be a whole number, not "${text}". ${USAGE}`);
  return Number(text);
}

function describe(record: Record, { findings, excused }: Verdict, seconds: number): string {
  const { seed, platform, questions, pictures, runs, faults } = record.plan;
  const counts = COLUMNS.map((column) => `${column} ${findings.filter((one) => one.column === column).length}`);
  const deaths = record.lives.filter(({ endedAtMs }) => endedAtMs !== undefined).length;
  return [
    `chaos on ${platform} from seed ${seed}: ${questions.length} questions, ${pictures.length} images, ${runs.length} scheduled runs, ${faults.length} faults, ${describeRoles(record.plan)}, ${deaths} process exits; ${record.calls.length} platform calls, ${record.acts.length} tool calls that act; ${seconds.toFixed(0)} s, ${describeMachine()}.`,
    `${counts.join(", ")}.`,
    describeGaps(findGaps(record)),
    ...[...excused].map(([why, count]) => `excused ${count} times: ${why}`),
    ...findings.map(({ column, sentence }) => `  ${column}: ${sentence}`),
    ...findings
      .slice(0, MAX_STORIES)
      .map((finding) => `\n  ${finding.column}: ${finding.sentence}\n${tellStory(finding, record)}`),
    ...(findings.length === 0
      ? []
      : [
          `npm run chaos -- --platform ${platform} --seed ${seed} --turns ${questions.length} ${describeShape(record.plan)}`,
        ]),
  ].join("\n");
}

function describeShape({ roles, isAlone }: Plan): string {
  if (isAlone) return "--alone";
  return `--processes ${roles.length}${roles.includes("worker") ? " --roles" : ""}`;
}

function describeGaps(gaps: readonly Gap[]): string {
  if (gaps.length === 0) return "No answer resumed after SIGKILL.";
  const secondsOf = (wasAlone: boolean) =>
    gaps.flatMap(({ ms, isAlone }) => (isAlone === wasAlone ? (ms / 1_000).toFixed(1) : [])).join(", ") || "none";
  return `Seconds until answers resumed after SIGKILL: ${secondsOf(true)}; while more was broken: ${secondsOf(false)}.`;
}

/** Describes the longest gap; "" without gaps. */
function tellLongest(gaps: readonly Gap[], record: Record): string {
  const { ms, messageId } = gaps.at(-1) ?? {};
  if (ms === undefined || messageId === undefined) return "";
  const about = { column: "other" as const, sentence: "", names: [], messageIds: [messageId] };
  return `\n  paused for ${Math.round(ms)} ms: ${messageId}\n${tellStory(about, record)}`;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
process.exit();
