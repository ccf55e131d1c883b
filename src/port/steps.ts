import type { Step } from "./sink.ts";

/** Describes how long a step took, for people: "4.2 s" once it has ended, "4 s" while it runs, "" below a second. */
export function describeTime({ begunAt, endedAt, runningMs = 0 }: Step): string {
  if (endedAt === undefined) return runningMs < 1_000 ? "" : `${Math.floor(runningMs / 1_000)} s`;
  const tookMs = begunAt === undefined ? 0 : endedAt - begunAt;
  return tookMs < 1_000 ? "" : toSeconds(tookMs);
}

/** Describes a step to people: "looking up the time in Tokyo, 4 s". */
export function describeStep(step: Step): string {
  return [step.title, describeTime(step)].filter(Boolean).join(", ");
}

/** Folds a finished answer's steps into one line: "Used 3 tools, 4.2 s", or "Stopped: …" or "Error: …". */
export function foldSteps(steps: readonly Step[]): string {
  const count = steps.length === 1 ? "1 tool" : `${steps.length} tools`;
  return `${toVerb(steps)} ${count}, ${toSeconds(coveredMs(steps))}`;
}

function toVerb(steps: readonly Step[]): string {
  if (steps.some(({ cutBy }) => cutBy === "stop")) return "Stopped:";
  return steps.some(({ cutBy }) => cutBy === "error") ? "Error:" : "Used";
}

/** Measures how long at least one step ran. Steps that ran in parallel count once. */
function coveredMs(steps: readonly Step[]): number {
  const spans = steps.flatMap(({ begunAt, endedAt }) =>
    begunAt === undefined || endedAt === undefined ? [] : [{ begunAt, endedAt }],
  );
  let covered = 0;
  let until = -Infinity;
  for (const { begunAt, endedAt } of spans.sort((one, other) => one.begunAt - other.begunAt)) {
    covered += Math.max(0, endedAt - Math.max(begunAt, until));
    until = Math.max(until, endedAt);
  }
  return covered;
}

function toSeconds(ms: number): string {
  return `${Math.max(0.1, ms / 1_000).toFixed(1)} s`;
}
