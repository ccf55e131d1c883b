import { describe, expect, test } from "vitest";
import { COLUMNS, type Column, judge } from "../../lab/chaos/judge.ts";
import { type Plan, type PlannedFault, type Platform, planRun } from "../../lab/chaos/plan.ts";
import { type RunOptions, runPlan } from "../../lab/chaos/run.ts";
import { tellStory } from "../../lab/chaos/story.ts";
import type { UpstreamWay } from "../../lab/chaos/upstream-faults.ts";
import { isRedisMissing } from "../../lab/support/redis.ts";

const BREAKS = new URL("../lab/chaos/breaks.ts", import.meta.url).href;
/** Longer than a takeover. Work that is open after this time stays open. */
const REST_MS = 12_000;

interface Quiet {
  platform: Platform;
  processes?: number;
  /**
   * Each question is a separate conversation, and answering it takes seconds, so each process works on several at a
   * time.
   */
  areApart?: boolean;
  /** All questions are in one thread, several per second. */
  areTogether?: boolean;
  ways?: readonly UpstreamWay[];
  faults?: readonly Partial<PlannedFault>[];
}

/** Questions that are answered slowly, with only the requested faults. */
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
  test.concurrent.each<Platform>(["slack", "discord"])(
    "the checker finds nothing wrong in a quiet run on %s",
    async (platform) => {
      const { findings } = await find(planQuietly({ platform, processes: 1 }), {});
      expect(findings).toEqual([]);
    },
  );

  const kills = [0, 0.9].map((share, index) => ({ kind: "kill" as const, atMs: 1_500 + 500 * index, share }));
  // One process writes in a workspace. Each process is frozen until the other one has passed the visible text.
  const stops = [
    { kind: "stop" as const, atMs: 2_000, lastsMs: 7_000, share: 0 },
    { kind: "stop" as const, atMs: 10_000, lastsMs: 8_000, share: 0.9 },
  ];

  // Several breaks share a run if none hides another, because each run needs two processes.
  const runs: ReadonlyArray<[names: string, columns: Column[], quiet: Quiet]> = [
    ["missed entries", ["lost"], { platform: "slack" }],
    ["no claim", ["doubled", "acted twice"], { platform: "slack", ways: ["tool"] }],
    ["restless alarm", ["schedules"], { platform: "slack" }],
    ["no takeover", ["stuck"], { platform: "slack", faults: kills }],
    ["no turns", ["out of order", "history"], { platform: "slack", areTogether: true }],
    [
      "lost pieces,no waits,loose tongue,sudden end,no reservation,lost counts",
      ["wrong text", "retry-after", "secrets", "other", "overspent", "dashboard"],
      { platform: "slack", ways: ["rate-limited", "answer"] },
    ],
    ["no fence", ["fenced"], { platform: "slack", areApart: true, faults: stops }],
  ];

  test("the runs break the service in every column of the checker", () =>
    expect(new Set(runs.flatMap(([, columns]) => columns))).toEqual(new Set(COLUMNS)));

  // A plan determines the events, but not which process gets which message. So a break may show only in another run.
  test.concurrent.each(runs)(
    "the checker notices a service with %s: %s",
    { retry: 6 },
    async (names, expected, quiet) => {
      const preload = [`${BREAKS}?${encodeURIComponent(names)}`];
      const { record, findings, columns } = await find(planQuietly(quiet), { preload });
      expect([...columns]).toEqual(expect.arrayContaining(expected));
      const finding = findings.find(({ column, names }) => expected.includes(column) && names.length > 0);
      if (finding !== undefined) expect(tellStory(finding, record)).toContain("is asked in place");
    },
  );
});
