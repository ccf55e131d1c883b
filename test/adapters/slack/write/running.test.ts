import { expect, test } from "vitest";
import { createRunning } from "../../../../adapters/slack/write/running.ts";

test("the turn of a message is found", () => {
  const running = createRunning();
  running.note("slack:T:C:1", "turn");
  expect([running.find("slack:T:C:1"), running.find("slack:T:C:2")]).toEqual(["turn", undefined]);
});

test("the newest are kept, and what is noted again is new", () => {
  const running = createRunning();
  running.note("kept", "turn");
  running.note("lost", "turn");
  running.note("kept", "turn");
  for (let index = 0; index < 1_999; index++) running.note(`message-${index}`, "turn");
  expect([running.find("kept"), running.find("lost"), running.find("message-0")]).toEqual(["turn", undefined, "turn"]);
});
