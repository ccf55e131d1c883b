import { describe, expect, test } from "vitest";
import { createWebClient, postMessage } from "../../../../lab/slack-sim/web-api.ts";
import type { Message } from "../../../../lab/slack-sim/world.ts";
import type { EarlierMessage, EarlierRange, MessageEvent } from "../../../../src/port/events.ts";
import { eventually } from "../../../support/eventually.ts";
import { type Stage, signal, startStage } from "../stage.ts";
import { personOf } from "../workspace.ts";

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

/** Mentions the bot in a thread. The bot also receives the thread's other messages. */
async function ask({ general, ada, message }: Stage, root: Message): Promise<MessageEvent> {
  const asked = ada.mention(general, "sum up", { thread: root });
  for (let index = 0; ; index++) {
    const found = await message(index);
    if (found.messageId.endsWith(asked.ts)) return found;
  }
}

function readEarlier({ adapter }: Stage, event: MessageEvent, range: Partial<EarlierRange> = {}) {
  if (adapter.readEarlier === undefined) throw new Error("The adapter reads nothing earlier.");
  return adapter.readEarlier(event, { maxMessages: 400, ...range }, signal);
}

describe("reading the earlier messages of a thread", () => {
  test("readEarlier returns what people, apps and the bot wrote in the thread before the question, with files", async () => {
    const stage = await startStage();
    const { event, root } = await startThread(stage);
    const { messages, isPartial } = await readEarlier(stage, event);
    expect(messages).toMatchObject([
      {
        author: { id: personOf(stage.slack, stage.ada), name: "Ada" },
        text: "Lunch at @U0?",
        attachments: [],
        isRoot: true,
      },
      { author: { name: "Bob" }, text: "the menu", attachments: [{ platform: "slack", name: "menu.png" }] },
      { author: { name: "Alarm" }, text: "beep", by: "app" },
      { text: "I am here", by: "bot" },
    ]);
    expect(isPartial).toBeUndefined();
    expect(messages[0]?.messageId).toBe(event.conversationId);
    const since = Math.floor(Number(root.ts) * 1_000);
    expect(messages[0]?.at).toBe(since);
    const later = await readEarlier(stage, event, { since });
    expect(later.messages.map(({ text }) => text)).toEqual(["the menu", "beep"]);
  });

  test("readEarlier returns the newest messages of a long thread and its first, over as many pages as Slack uses", async () => {
    const stage = await startStage({ simulator: { limits: { maxPage: 40 } } });
    const { general, ada, bob } = stage;
    const root = ada.say(general, "The plan");
    for (let index = 0; index < 100; index++) bob.say(general, `${index}`, { thread: root });
    const event = await ask(stage, root);
    const { messages, isPartial } = await readEarlier(stage, event, { maxMessages: 60 });
    const newest = Array.from({ length: 60 }, (_, index) => `${index + 40}`);
    expect(messages.map(({ text }) => text)).toEqual(["The plan", ...newest]);
    expect(isPartial).toBe(true);
    expect((await readEarlier(stage, event)).messages).toHaveLength(101);
  });

  test("readEarlier returns the part that Slack gives, and says that it is partial", async () => {
    const stage = await startStage({ simulator: { limits: { history: "commercial" } } });
    const { slack, general, ada, bob } = stage;
    const root = ada.say(general, "The plan");
    for (let index = 0; index < 30; index++) bob.say(general, `${index}`, { thread: root });
    const event = await ask(stage, root);
    const { messages, isPartial } = await readEarlier(stage, event);
    expect([messages.length, isPartial]).toEqual([15, true]);
    // Reading newer messages would use up the call that the next thread needs.
    expect(await readEarlier(stage, event, { since: 1 })).toEqual({ messages: [], isPartial: true });
    expect(slack.requests.filter(({ method }) => method === "conversations.replies")).toHaveLength(1);
  });

  test("readEarlier keeps the pages that it has if Slack gives no more", async () => {
    const stage = await startStage({
      simulator: { limits: { maxPage: 40, perMinute: { "conversations.replies": 1 } } },
    });
    stage.slack.allow("rate-limited");
    const { general, ada, bob } = stage;
    const root = ada.say(general, "The plan");
    for (let index = 0; index < 100; index++) bob.say(general, `${index}`, { thread: root });
    const { messages, isPartial } = await readEarlier(stage, await ask(stage, root));
    expect([messages.length, isPartial]).toEqual([40, true]);
  });

  test("readEarlier returns nothing, without a call, if the question started the thread", async () => {
    const stage = await startStage();
    stage.ada.mention(stage.general, "hello");
    expect((await readEarlier(stage, await stage.message(0))).messages).toEqual([]);
    expect(stage.slack.requests.some(({ method }) => method === "conversations.replies")).toBe(false);
  });

  test("readEarlier makes no new call before Slack allows one", async () => {
    const stage = await startStage();
    const { event } = await startThread(stage);
    stage.slack.failNext("conversations.replies", { retryAfterS: 2 });
    stage.slack.allow("rate-limited");
    await expect(readEarlier(stage, event)).rejects.toThrow();
    await expect(readEarlier(stage, event)).rejects.toThrow(/to wait \d+ s/);
    const count = () => readEarlier(stage, event).then(({ messages }) => messages.length, String);
    await eventually(count).toBe(4);
    expect(stage.slack.requests.filter(({ method }) => method === "conversations.replies")).toHaveLength(2);
  });
});

describe("reading the channel around a question", () => {
  const texts = (messages: readonly EarlierMessage[]) => messages.map(({ text }) => text);

  async function readChannel({ adapter }: Stage, { reply, messageId }: MessageEvent, more: string[] = [], count = 15) {
    return (await adapter.readChannel?.(reply, [messageId, ...more], count, signal)) ?? [];
  }

  test("readChannel returns the last messages before the question, oldest first, without threads", async () => {
    const stage = await startStage();
    const { slack, general, ada, bob } = stage;
    const first = bob.say(general, "one");
    ada.say(general, "in a thread", { thread: first });
    slack.user({ name: "Alarm", isBot: true }).say(general, "beep");
    bob.say(general, "two");
    const event = await asked(stage);
    bob.say(general, "after it");
    expect(texts(await readChannel(stage, event))).toEqual(["one", "beep", "two"]);
    expect(texts(await readChannel(stage, event, [], 2))).toEqual(["beep", "two"]);
    expect((await readChannel(stage, event))[1]).toMatchObject({ author: { name: "Alarm" }, by: "app" });
  });

  test("readChannel works for a question in another person's thread, and in no other thread", async () => {
    const stage = await startStage();
    const { general, ada, bob } = stage;
    bob.say(general, "one");
    const event = await asked(stage);
    const root = general.messages.get(event.reply.threadId ?? "");
    const later = await ask(stage, root as Message);
    expect(texts(await readChannel(stage, later, [event.messageId]))).toEqual(["one"]);
    const other = await ask(stage, ada.say(general, "of people"));
    expect(await readChannel(stage, other)).toEqual([]);
  });

  test("readChannel returns nothing in a direct conversation, and reads no channel that is closed to the bot", async () => {
    const stage = await startStage();
    stage.ada.dm("one");
    stage.ada.dm("two");
    expect(await readChannel(stage, await stage.message(1))).toEqual([]);
    const event = await asked(stage);
    stage.general.members.delete(stage.slack.workspace.bot.id);
    await expect(readChannel(stage, event)).rejects.toThrow(/not_in_channel/);
  });

  async function askAlone({ ada, events, event }: Stage): Promise<MessageEvent> {
    const count = events.length;
    ada.dm("what now?");
    return (await event(count)) as MessageEvent;
  }

  test("for a question to the bot alone, readChannel reads the channel that the person looks at, with its name", async () => {
    const stage = await startStage();
    const { slack, ada, bob, general } = stage;
    bob.say(general, "one");
    slack.user({ name: "Alarm", isBot: true }).say(general, "beep");
    expect(await readChannel(stage, await askAlone(stage))).toEqual([]);
    ada.lookAt(general);
    const event = await askAlone(stage);
    const [told, ...said] = await readChannel(stage, event);
    expect(told).toMatchObject({ author: { name: "Slack" }, by: "app", text: expect.stringContaining("#general") });
    expect(texts(said)).toEqual(["one", "beep"]);
    expect(texts((await readChannel(stage, event, [], 1)).slice(1))).toEqual(["beep"]);
  });

  test("readChannel shows neither messages nor name of a looked-at channel that is closed to the bot or the person", async () => {
    const stage = await startStage();
    const { slack, ada, bob } = stage;
    const secret = slack.channel({ name: "secret", members: [bob], kind: "private" });
    const closed = slack.channel({ name: "closed", members: [ada, bob], kind: "private", hasApp: false });
    const open = slack.channel({ name: "open", members: [ada, bob], hasApp: false });
    for (const channel of [secret, closed, open]) {
      bob.say(channel, "psst");
      ada.lookAt(channel);
      expect(await readChannel(stage, await askAlone(stage))).toEqual([]);
    }
  });

  async function asked({ ada, general, events, event }: Stage): Promise<MessageEvent> {
    const count = events.length;
    ada.mention(general, "what now?");
    return (await event(count)) as MessageEvent;
  }
});
