import { describe, expect, test } from "vitest";
import type { Step } from "../../src/port/sink.ts";
import { describeTime, foldSteps } from "../../src/port/steps.ts";

const step = (begunAt: number, endedAt?: number): Step => ({
  id: String(begunAt),
  title: "looking",
  state: "done",
  begunAt,
  ...(endedAt !== undefined && { endedAt }),
});

describe("the steps of a finished answer", () => {
  test("finished steps fold into one line, with the time in which any of them ran", () => {
    expect(foldSteps([step(0, 2_000)])).toBe("Used 1 tool, 2.0 s");
    expect(foldSteps([step(0, 2_000), step(1_000, 3_000), step(10_000, 11_240)])).toBe("Used 3 tools, 4.2 s");
    expect(foldSteps([step(0, 4)])).toBe("Used 1 tool, 0.1 s");
  });

  test("folded steps say whether a stop or an error ended the answer during a step, and never suggest that work continues", () => {
    const cut = (cutBy: "stop" | "error"): Step => ({ ...step(0, 2_000), state: "failed", cutBy });
    expect(foldSteps([step(0, 1_000), cut("stop")])).toBe("Stopped: 2 tools, 2.0 s");
    expect(foldSteps([cut("error")])).toBe("Error: 1 tool, 2.0 s");
    expect(foldSteps([{ ...step(0, 2_000), state: "failed" }])).toBe("Used 1 tool, 2.0 s");
  });

  test("folded steps show how long each took, from a second on", () => {
    expect([step(0, 4_240), step(0, 900), step(0)].map(describeTime)).toEqual(["4.2 s", "", ""]);
    const running = (runningMs: number) => ({ ...step(0), runningMs });
    expect([running(12_900), running(900)].map(describeTime)).toEqual(["12 s", ""]);
  });
});
