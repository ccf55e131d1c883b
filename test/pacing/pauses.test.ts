import { describe, expect, test } from "vitest";
import { createPauses } from "../../src/pacing/pauses.ts";

describe("the pauses that a platform requested", () => {
  test("a pause applies to the calls of one key, and ends", () => {
    let now = 1_000;
    const pauses = createPauses(() => now);
    pauses.note("T1", 500);
    expect(pauses.left("T1")).toBe(500);
    expect(pauses.left("T2")).toBe(0);
    now += 499;
    expect(pauses.left("T1"), "a timer may be early by a millisecond").toBe(0);
  });

  test("pauses still apply if there are more than the limit, except for the oldest", () => {
    let now = 0;
    const pauses = createPauses(() => now);
    for (let team = 0; team < 600; team++) pauses.note(`old${team}`, 10);
    pauses.note("T1", 500);
    now = 100;
    for (let team = 0; team < 1_100; team++) pauses.note(`new${team}`, 500);
    expect(pauses.left("new1099")).toBe(500);
    expect(pauses.left("new600")).toBe(500);
    expect(pauses.left("T1")).toBe(0);
  });

  test("a later, shorter pause does not shorten an earlier one", () => {
    const pauses = createPauses(() => 0);
    pauses.note("T1", 500);
    pauses.note("T1", 100);
    expect(pauses.left("T1")).toBe(500);
  });
});
