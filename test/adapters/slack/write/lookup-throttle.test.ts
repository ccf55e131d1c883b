import { describe, expect, test } from "vitest";
import { createReadingGate } from "../../../../adapters/slack/write/lookup-throttle.ts";

describe("the gate before looks at messages", () => {
  test("lets thirty through in a minute, in each workspace", () => {
    let now = 0;
    const gate = createReadingGate(() => now);
    for (let index = 0; index < 30; index++) gate.enter("T1");
    expect(() => gate.enter("T1")).toThrow(/looked up/);
    gate.enter("T2");
    now += 60_000;
    gate.enter("T1");
  });

  test("stays closed for as long as Slack says, and refuses nothing that is written", () => {
    let now = 0;
    const gate = createReadingGate(() => now);
    gate.close("T1", 5_000);
    expect(() => gate.enter("T1")).toThrow(expect.objectContaining({ kind: "unavailable" }));
    now += 5_000;
    gate.enter("T1");
  });
});
