import { describe, expect, onTestFinished, test } from "vitest";
import { createClock } from "../../../lab/slack-sim/clock.ts";

describe("the clock of the simulator", () => {
  test("the clock moves in real time and by advance", () => {
    const clock = createClock({ startMs: 1_000 });
    onTestFinished(clock.close);
    const before = clock.now();
    clock.advance(60_000);
    expect(clock.now()).toBeGreaterThanOrEqual(before + 60_000);
  });

  test("a frozen clock moves only by advance", () => {
    const clock = createClock({ startMs: 1_000, isFrozen: true });
    clock.advance(5);
    expect(clock.now()).toBe(1_005);
  });

  test("`advance` runs due alarms in order, each at its own time", () => {
    const clock = createClock({ startMs: 0, isFrozen: true });
    const rung: Array<[string, number]> = [];
    const ring = (name: string) => () => void rung.push([name, clock.now()]);
    clock.after(30, ring("late"));
    clock.after(10, () => {
      ring("early")();
      clock.after(5, ring("added on the way"));
    });
    clock.after(90, ring("never"));
    clock.after(20, ring("taken back"))();
    clock.advance(50);
    expect(rung).toEqual([
      ["early", 10],
      ["added on the way", 15],
      ["late", 30],
    ]);
  });

  test("an alarm runs in real time, and never early", async () => {
    const clock = createClock();
    onTestFinished(clock.close);
    const dueMs = clock.now() + 5;
    const rungMs = await new Promise<number>((resolve) => void clock.after(5, () => resolve(clock.now())));
    expect(rungMs).toBeGreaterThanOrEqual(dueMs);
  });
});
