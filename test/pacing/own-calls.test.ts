import { describe, expect, test } from "vitest";
import { createOwnCalls } from "../../src/pacing/own-calls.ts";

const open = (at: number, kind: "post" | "edit" = "edit") => ({ at, kind, answeredAt: Infinity });

describe("own calls", () => {
  test("tell which calls were in flight together", () => {
    const calls = createOwnCalls();
    for (const at of [0, 1, 5]) calls.add(open(at));
    calls.answered(0, "edit", 2);
    expect(calls.overlapping(0, 2)).toBe(1);
    calls.answered(1, "edit", 3);
    expect(calls.overlapping(1, 3)).toBe(1);
    calls.answered(5, "edit", 6);
    expect(calls.overlapping(5, 6)).toBe(0);
  });

  test("tell apart two calls of one instant", () => {
    const calls = createOwnCalls();
    calls.add(open(0, "post"));
    calls.add(open(0, "edit"));
    calls.answered(0, "edit", 1);
    expect(calls.unanswered()).toBe(1);
    expect(calls.overlapping(0, 1)).toBe(1);
    expect(calls.remove(0, "post")).toEqual(open(0, "post"));
    expect(calls.remove(0, "post")).toBeUndefined();
    expect(calls.unanswered()).toBe(0);
  });

  test("count what came since a moment or was in flight then", () => {
    const calls = createOwnCalls();
    for (const at of [0, 1, 2, 3]) calls.add(open(at));
    calls.answered(0, "edit", 1);
    calls.answered(1, "edit", 2.5);
    expect(calls.since(2)).toBe(3);
    expect(calls.last()).toBe(3);
  });

  test("forget answered calls in time, unanswered ones never", () => {
    const calls = createOwnCalls();
    calls.add(open(0));
    calls.add(open(1));
    calls.answered(0, "edit", 1);
    calls.prune(12, 1);
    expect(calls.all()).toHaveLength(2);
    calls.prune(100, 1);
    expect(calls.all()).toEqual([open(1)]);
  });
});
