import { describe, expect, test } from "vitest";
import { COLUMNS, type Column, judge } from "../../chaos/judge.ts";
import { type Plan, type PlannedFault, type Platform, planRun } from "../../chaos/plan.ts";
import { type RunOptions, runPlan } from "../../chaos/run.ts";
import { tellStory } from "../../chaos/story.ts";
import type { UpstreamWay } from "../support/fault-loop/upstream-faults.ts";
import { isRedisMissing } from "../support/redis.ts";

const BREAKS = new URL("../chaos/breaks.ts", import.meta.url).href;
/** Longer than a takeover takes: whatever is still open then stays open. */
const REST_MS = 12_000;

interface Quiet {
  platform: Platform;
  processes?: number;
  /** Each question is a conversation of its own, and its answer takes seconds: each process has several at a time. */
  areApart?: boolean;
  /** All questions are asked in one thread, those of a second at once. */
  areTogether?: boolean;
  ways?: readonly UpstreamWay[];
  faults?: readonly Partial<PlannedFault>[];
}

/** Questions that are answered at leisure, and only those faults that are asked for. */
function planQuietly({ platform, processes = 2, ways = ["answer"], faults = [], ...shape }: Quiet): Plan {
  const { areApart = false, areTogether = false } = shape;
  const plan = planRun({ seed: 7, turns: 16, platform, processes });
  return {
    ...plan,
    aheadMs: plan.aheadMs.map(() => 0),
    questions: plan.questions.map(({ doing: _doing, ...question }) => ({
      ...question,
      ...(areTogether && { place: 0, atMs: Math.floor(question.atMs / 1_000) * 1_000 }),
      script: { ways, paceMs: areApart ? 800 : 100 },
    })),
    places: areApart ? plan.places.map(() => "channel") : areTogether ? ["thread"] : plan.places,
    pictures: [],
    faults: faults.map((fault) => ({ kind: "platform", atMs: 0, lastsMs: 100, share: 0, place: 0, ...fault })),
  };
}

async function find(plan: Plan, options: RunOptions) {
  const record = await runPlan(plan, { restMs: REST_MS, ...options });
  const { findings } = judge(record);
  return { record, findings, columns: new Set(findings.map(({ column }) => column)) };
}

describe.skipIf(isRedisMissing)("the checker of processes on one Redis (needs redis-server)", () => {
  test.concurrent.each<Platform>(["slack", "discord"])("finds nothing on %s where all goes well", async (platform) => {
    const { findings } = await find(planQuietly({ platform, processes: 1 }), {});
    expect(findings).toEqual([]);
  });

  const kills = [0, 0.9].map((share, index) => ({ kind: "kill" as const, atMs: 1_500 + 500 * index, share }));
  // One process writes in a workspace: whichever it is stands still until the other one has passed what was shown.
  const stops = [
    { kind: "stop" as const, atMs: 2_000, lastsMs: 7_000, share: 0 },
    { kind: "stop" as const, atMs: 10_000, lastsMs: 8_000, share: 0.9 },
  ];

  // What does not hide what another one does is broken in one run: each costs two processes.
  const runs: ReadonlyArray<[names: string, columns: Column[], quiet: Quiet]> = [
    ["no sweep", ["lost"], { platform: "slack" }],
    ["no claim", ["doubled", "acted twice"], { platform: "slack", ways: ["tool"] }],
    ["no takeover", ["stuck"], { platform: "slack", faults: kills }],
    ["no turns", ["out of order", "history"], { platform: "slack", areTogether: true }],
    [
      "lost pieces,no waits,loose tongue,sudden end,no reservation,lost counts",
      ["wrong text", "retry-after", "secrets", "other", "overspent", "dashboard"],
      { platform: "slack", ways: ["rate-limited", "answer"] },
    ],
    ["no fence", ["fenced"], { platform: "slack", areApart: true, faults: stops }],
  ];

  test("has a break for each of its columns", () =>
    expect(new Set(runs.flatMap(([, columns]) => columns))).toEqual(new Set(COLUMNS)));

  // A plan decides what happens, not which process gets which message: to notice a break may take another run.
  test.concurrent.each(runs)("notices a service with %s: %s", { retry: 2 }, async (names, expected, quiet) => {
    const preload = [`${BREAKS}?${encodeURIComponent(names)}`];
    const { record, findings, columns } = await find(planQuietly(quiet), { preload });
    expect([...columns]).toEqual(expect.arrayContaining(expected));
    const finding = findings.find(({ column, names }) => expected.includes(column) && names.length > 0);
    if (finding !== undefined) expect(tellStory(finding, record)).toContain("is said in place");
  });
});
