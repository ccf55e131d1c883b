import { describe, expect, test } from "vitest";
import { createPauses } from "../../../../adapters/slack/api/pauses.ts";

describe("the waits that Slack asked for", () => {
  test("hold for a method in a workspace, and end", () => {
    let now = 1_000;
    const pauses = createPauses(() => now);
    pauses.note("T1", "chat.update", 500);
    expect(pauses.left("T1", "chat.update")).toBe(500);
    expect(pauses.left("T2", "chat.update")).toBe(0);
    expect(pauses.left("T1", "chat.postMessage")).toBe(0);
    now += 499;
    expect(pauses.left("T1", "chat.update"), "a timer may be early by a millisecond").toBe(0);
  });

  test("still hold when more are noted than are remembered, except for the first", () => {
    let now = 0;
    const pauses = createPauses(() => now);
    for (let team = 0; team < 600; team++) pauses.note(`old${team}`, "chat.update", 10);
    pauses.note("T1", "chat.update", 500);
    now = 100;
    for (let team = 0; team < 1_100; team++) pauses.note(`new${team}`, "chat.update", 500);
    expect(pauses.left("new1099", "chat.update")).toBe(500);
    expect(pauses.left("new600", "chat.update")).toBe(500);
    expect(pauses.left("T1", "chat.update")).toBe(0);
  });

  test("are not made shorter by a later and shorter one", () => {
    const pauses = createPauses(() => 0);
    pauses.note("T1", "chat.update", 500);
    pauses.note("T1", "chat.update", 100);
    expect(pauses.left("T1", "chat.update")).toBe(500);
  });
});
