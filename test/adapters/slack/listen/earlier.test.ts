import { describe, expect, test } from "vitest";
import type { MessageEvent } from "../../../../src/port/events.ts";
import { createWebClient, postMessage } from "../../../simulators/slack/web-api.ts";
import { type Stage, signal, startStage } from "../stage.ts";
import { personOf } from "../workspace.ts";

/** A thread of people in which the bot is mentioned. */
async function startThread(stage: Stage) {
  const { general, ada, bob, slack, message } = stage;
  const root = ada.say(general, "Lunch at <@U0>?");
  bob.upload(general, [{ name: "menu.png", bytes: Buffer.from("menu") }], "the menu", { thread: root });
  slack.user({ name: "Alarm", isBot: true }).say(general, "beep", { thread: root });
  await postMessage(createWebClient(slack), { channel: general.id, thread_ts: root.ts, text: "I am here" });
  const asked = ada.mention(general, "what is best?", { thread: root });
  ada.say(general, "after it", { thread: root });
  for (let index = 0; ; index++) {
    const found = await message(index);
    if (found.messageId.endsWith(asked.ts)) return { event: found, root };
  }
}

function readEarlier({ adapter }: Stage, event: MessageEvent) {
  if (adapter.readEarlier === undefined) throw new Error("The adapter reads nothing earlier.");
  return adapter.readEarlier(event, signal);
}

describe("the earlier messages of a thread", () => {
  test("is what people said in the thread up to the question, with their files", async () => {
    const stage = await startStage();
    const { event, root } = await startThread(stage);
    const earlier = await readEarlier(stage, event);
    expect(earlier).toMatchObject([
      { author: { id: personOf(stage.slack, stage.ada), name: "Ada" }, text: "Lunch at @U0?", attachments: [] },
      { author: { name: "Bob" }, text: "the menu", attachments: [{ platform: "slack", name: "menu.png" }] },
    ]);
    expect(earlier[0]?.messageId).toBe(event.conversationId);
    expect(earlier[0]?.at).toBe(Math.floor(Number(root.ts) * 1_000));
    const calls = stage.slack.requests.filter(({ method }) => method === "conversations.replies");
    expect(calls.map(({ args }) => args["limit"])).toEqual(["15"]);
  });

  test("is nothing where the question began the thread, and nobody is asked then", async () => {
    const stage = await startStage();
    stage.ada.mention(stage.general, "hello");
    expect(await readEarlier(stage, await stage.message(0))).toEqual([]);
    expect(stage.slack.requests.some(({ method }) => method === "conversations.replies")).toBe(false);
  });

  test("is not asked for again before Slack allows it", async () => {
    const stage = await startStage();
    const { event } = await startThread(stage);
    stage.slack.failNext("conversations.replies", { retryAfterS: 60 });
    stage.slack.allow("rate-limited");
    await expect(readEarlier(stage, event)).rejects.toThrow();
    await expect(readEarlier(stage, event)).rejects.toThrow(/to wait \d+ s/);
    stage.slack.advance(61_000);
    expect(await readEarlier(stage, event)).toHaveLength(2);
    expect(stage.slack.requests.filter(({ method }) => method === "conversations.replies")).toHaveLength(2);
  });
});
