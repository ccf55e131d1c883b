import { parseArgs } from "node:util";
import { describeMachine } from "../bench/support/lifecycle.ts";
import { findGaps } from "./gaps.ts";
import { COLUMNS, judge, type Verdict } from "./judge.ts";
import { describePlan, describeRoles, type Plan, type Platform, planRun } from "./plan.ts";
import type { Record } from "./record.ts";
import { runPlan } from "./run.ts";
import { tellStory } from "./story.ts";

const USAGE = "npm run chaos -- --seed 1 --turns 200 --platform slack|discord [--processes 3] [--roles] [--plan]";
const MAX_STORIES = 10;

async function main(args: string[]): Promise<void> {
  const { plan, isShown, isVerbose } = readOptions(args);
  if (isShown) return print(describePlan(plan));
  const startMs = performance.now();
  const onNote = ({ what }: { what: string }) =>
    process.stderr.write(`${((performance.now() - startMs) / 1_000).toFixed(2).padStart(8)}  ${what}\n`);
  const record = await runPlan(plan, isVerbose ? { onNote } : {});
  const verdict = judge(record);
  print(describe(record, verdict, (performance.now() - startMs) / 1_000));
  if (verdict.findings.length > 0) process.exitCode = 1;
}

/** Throws in plain words. */
function readOptions(args: string[]): { plan: Plan; isShown: boolean; isVerbose: boolean } {
  const { values } = parseArgs({
    args,
    options: {
      seed: { type: "string", default: "1" },
      turns: { type: "string", default: "200" },
      platform: { type: "string", default: "slack" },
      processes: { type: "string" },
      roles: { type: "boolean", default: false },
      plan: { type: "boolean", default: false },
      verbose: { type: "boolean", default: false },
    },
  });
  const { platform } = values;
  if (!isPlatform(platform)) throw new Error(`There is no platform "${platform}" here. ${USAGE}`);
  const hasRoles = values.roles;
  const counts = { ...values, processes: values.processes ?? (hasRoles ? "5" : "3") };
  const [seed, turns, processes] = (["seed", "turns", "processes"] as const).map((name) =>
    readCount(name, counts[name]),
  );
  if (seed === undefined || !turns || !processes) throw new Error(`There is nothing to do. ${USAGE}`);
  if (hasRoles && processes < 2) throw new Error(`One process cannot share its roles out. ${USAGE}`);
  return {
    plan: planRun({ seed, turns, platform, processes, hasRoles }),
    isShown: values.plan,
    isVerbose: values.verbose,
  };
}

function isPlatform(name: string): name is Platform {
  return name === "slack" || name === "discord";
}

function readCount(name: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new Error(`--${name} must be a whole number, not "${text}". ${USAGE}`);
  return Number(text);
}

function describe(record: Record, { findings, excused }: Verdict, seconds: number): string {
  const { seed, platform, roles, questions, pictures, faults } = record.plan;
  const counts = COLUMNS.map((column) => `${column} ${findings.filter((one) => one.column === column).length}`);
  const deaths = record.lives.filter(({ endedAtMs }) => endedAtMs !== undefined).length;
  return [
    `chaos on ${platform} from seed ${seed}: ${questions.length} questions, ${pictures.length} pictures, ${faults.length} faults, ${describeRoles(roles)}, ended ${deaths} times; ${record.calls.length} calls; ${seconds.toFixed(0)} s, ${describeMachine()}.`,
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
          `npm run chaos -- --platform ${platform} --seed ${seed} --turns ${questions.length} --processes ${roles.length}${roles.includes("worker") ? " --roles" : ""}`,
        ]),
  ].join("\n");
}

function describeGaps(gapsMs: number[]): string {
  const sorted = gapsMs.toSorted((a, b) => a - b);
  const seconds = (share: number) => ((sorted[Math.ceil(share * (sorted.length - 1))] ?? 0) / 1_000).toFixed(1);
  return `${sorted.length} answers grew on after SIGKILL${sorted.length === 0 ? "" : `: after ${seconds(0.5)} s (median), ${seconds(0.9)} s (nine of ten), ${seconds(1)} s (all)`}.`;
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
