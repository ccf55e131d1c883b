import { describe, expect, test } from "vitest";
import { createIds, createTimestamps } from "../../../lab/slack-sim/core.ts";

describe("timestamps of the simulator", () => {
  test("timestamps rise strictly, even if the time stops or moves back", () => {
    let nowMs = 1_700_000_000_123;
    const newTs = createTimestamps(() => nowMs);
    const first = newTs();
    const second = newTs();
    nowMs -= 5_000;
    expect([first, second, newTs()]).toEqual(["1700000000.123000", "1700000000.123001", "1700000000.123002"]);
  });
});

describe("ids of the simulator", () => {
  test("ids are unique for any prefix", () => {
    const newId = createIds();
    expect([newId("U"), newId("C"), newId("U")]).toEqual(["U000000001", "C000000002", "U000000003"]);
  });
});
