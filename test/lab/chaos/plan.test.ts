import { describe, expect, test } from "vitest";
import { describePlan, type PlanOptions, planRun } from "../../../lab/chaos/plan.ts";

const OPTIONS: PlanOptions = { seed: 1, turns: 200, platform: "slack", processes: 3 };

describe("a plan of faults", () => {
  test("the same seed makes the same plan and another seed makes another plan", () => {
    expect(describePlan(planRun(OPTIONS))).toBe(describePlan(planRun(OPTIONS)));
    expect(planRun({ ...OPTIONS, seed: 2 }).faults).not.toEqual(planRun(OPTIONS).faults);
  });

  test("a plan has the requested number of questions and every name is unique", () => {
    const { questions, pictures } = planRun(OPTIONS);
    expect(questions).toHaveLength(200);
    expect(new Set([...questions, ...pictures].map(({ name }) => name)).size).toBe(200 + pictures.length);
  });

  test("a long plan has every kind of fault and one clock that is ahead", () => {
    const { faults, aheadMs } = planRun({ ...OPTIONS, turns: 2_000 });
    expect(new Set(faults.map(({ kind }) => kind)).size).toBe(9);
    expect(aheadMs.filter((ahead) => ahead > 0)).toHaveLength(1);
  });

  test("processes split the roles if the options say so, and at least one process receives events", () => {
    const rolesOf = (processes: number, hasRoles: boolean) => planRun({ ...OPTIONS, processes, hasRoles }).roles;
    expect(rolesOf(2, false)).toEqual(["all", "all"]);
    expect(rolesOf(2, true)).toEqual(["ingress", "worker"]);
    expect(rolesOf(5, true)).toEqual(["ingress", "ingress", "worker", "worker", "worker"]);
  });
});
