import { describe, expect, test } from "vitest";
import type { Step } from "../../src/port/sink.ts";
import { createPlacedSteps, createSteps, describeRunning, rendersSteps } from "../../src/reply/steps.ts";

const step = (id: string, state: Step["state"] = "running"): Step => ({ id, title: `doing ${id}`, state });

describe("the steps of a reply", () => {
  test("steps keep the order in which they started, each with its current state", () => {
    const steps = createSteps();
    for (const one of [step("a"), step("b"), step("a", "done")]) steps.note(one);
    expect(steps.all).toMatchObject([step("a", "done"), step("b")]);
  });

  test("steps that were running at the end say whether a stop or an error ended them, and no longer change", () => {
    for (const cutBy of ["stop", "error"] as const) {
      const steps = createSteps();
      for (const one of [step("a", "done"), step("b")]) steps.note(one);
      steps.end(cutBy);
      for (const late of [step("b"), step("c")]) steps.note(late);
      expect(steps.all.map((one) => [one.state, one.cutBy])).toEqual([
        ["done", undefined],
        ["failed", cutBy],
      ]);
    }
  });

  test("steps know when they started and ended, whatever is reported in between", () => {
    let time = 0;
    const steps = createSteps(() => (time += 100));
    for (const one of [step("a"), step("a"), step("a", "done")]) steps.note(one);
    expect(steps.all).toEqual([{ ...step("a", "done"), begunAt: 100, endedAt: 200 }]);
  });

  test("a reply describes running steps, and names each once", () => {
    expect(describeRunning([step("a"), step("b", "done"), step("c"), { ...step("d"), title: "doing a" }])).toBe(
      "doing a, doing c",
    );
    expect(describeRunning([step("a", "failed")])).toBe("");
  });

  test("steps with the same name are named once, with the time of the first", () => {
    let time = 0;
    const steps = createSteps(() => time);
    steps.note({ ...step("a"), title: "drawing" });
    time = 3_000;
    steps.note({ ...step("b"), title: "drawing" });
    time = 12_000;
    expect(steps.tick()).toBe(true);
    expect(describeRunning(steps.all)).toBe("drawing, 12 s");
    steps.end();
    expect(steps.tick()).toBe(false);
  });

  test("a reply renders steps if the platform does and the fallback is not active", () => {
    const fallback = (isActive: boolean) => ({ isActive, activate: () => {} });
    expect([{}, { traits: { steps: true } }].map((sink) => rendersSteps(sink))).toEqual([false, true]);
    expect(
      [true, false].map((isActive) => rendersSteps({ traits: { steps: true }, fallback: fallback(isActive) })),
    ).toEqual([false, true]);
  });
});

describe("the messages that show steps", () => {
  test("a finished step stays in its message, and a running one moves to the newest", () => {
    const placed = createPlacedSteps();
    placed.place([step("a"), step("b", "done")], 0);
    placed.place([step("a"), step("b", "done")], 1);
    expect([placed.of(0), placed.of(1)]).toEqual([[step("b", "done")], [step("a")]]);
    placed.place([step("a", "done"), step("b", "done"), step("c", "done")], 2);
    expect([0, 1, 2].map((index) => placed.of(index).map(({ id }) => id))).toEqual([["b"], ["a"], ["c"]]);
  });
});
