import { expect, test } from "vitest";
import type { ActionEvent } from "../src/adapter.ts";
import { createRate } from "../src/feedback.ts";
import { newRecord, type TurnRecord } from "../src/turn-record.ts";
import { message } from "./support/events.ts";

const event: ActionEvent = {
  kind: "action",
  action: "good",
  key: "test:press",
  conversationId: "test:c",
  author: { id: "ada", name: "Ada" },
  reply: { platform: "test", channelId: "c" },
  turnId: "turn",
  at: 0,
};

function setUp() {
  const kept = new Map<string, TurnRecord>([["turn", newRecord([message("hello")], [message("hello")])]]);
  const counted: string[] = [];
  const rate = createRate({
    records: { load: async (id) => kept.get(id), save: async (record) => void kept.set("turn", record) },
    metrics: { feedback: (platform, feedback) => void counted.push(`${platform} ${feedback}`) },
  });
  return { rate, counted, feedback: () => kept.get("turn")?.feedback };
}

test("a judgement is kept with the turn and counted", async () => {
  const { rate, counted, feedback } = setUp();
  await rate(event, "good");
  expect(feedback()).toEqual({ ada: "good" });
  expect(counted).toEqual(["test good"]);
});

test("said twice it counts once, and the latest word of each person holds", async () => {
  const { rate, counted, feedback } = setUp();
  await rate(event, "good");
  await rate(event, "good");
  await rate(event, "bad");
  await rate({ ...event, author: { id: "bob", name: "Bob" } }, "good");
  expect(feedback()).toEqual({ ada: "bad", bob: "good" });
  expect(counted).toEqual(["test good", "test bad", "test good"]);
});

test("a turn that is not kept any more is judged by nobody", async () => {
  const { rate, counted } = setUp();
  await rate({ ...event, turnId: "long gone" }, "good");
  expect(counted).toEqual([]);
});
