import { expect, test } from "vitest";
import { judge } from "../../lab/chaos/judge.ts";
import { type Platform, planRun } from "../../lab/chaos/plan.ts";
import { runPlan } from "../../lab/chaos/run.ts";

// In both plans, the process is killed and ended several times.
test.concurrent.each<[Platform, seed: number]>([
  ["discord", 43],
  ["slack", 1],
])(
  "one process without Redis leaves every question on %s with one ending, however often it dies",
  async (platform, seed) => {
    const record = await runPlan(planRun({ seed, turns: 60, platform, processes: 1, isAlone: true }));
    expect(judge(record).findings).toEqual([]);
    expect(record.turns.length).toBeGreaterThan(10);
  },
);
