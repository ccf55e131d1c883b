import { describe, expect, test } from "vitest";
import { createActivity, createPlaceQuestion } from "../../../../adapters/discord/hear/threads.ts";
import type { ThreadMode } from "../../../../adapters/discord/options.ts";
import { toCustomId } from "../../../../adapters/discord/write/draft.ts";
import { message as question } from "../../../../lab/support/events.ts";
import { silent } from "../../../../lab/support/log.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import type { Button } from "../../../../src/port/sink.ts";
import { botMessage, draft, NO_ROOMS, type StageOptions, signal, startStage } from "../stage.ts";

const OPEN = "POST /channels/:channel/messages/:message/threads";
const STOP: Button = { action: "stop", turnId: "turn", label: "Stop" };

/** Asks two questions in one channel, the second one during the answer to the first. Resolves to their events. */
async function askTwice(threads: ThreadMode, options: StageOptions & { isOver?: boolean; isDeleted?: boolean } = {}) {
  const stage = await startStage({ threads, ...options });
  const { discord, adapter, channel, ada, bob, message } = stage;
  discord.people.say(channel, ada, "first question", { mentionBot: true });
  const first = await message(0);
  const sink = adapter.sink(first.reply, NO_RIGHT);
  const { id } = await sink.post(draft("An answer", { buttons: [STOP], streaming: true }), "n", signal);
  if (options.isOver === true) await sink.edit(id, draft("An answer."), signal);
  if (options.isDeleted === true) discord.people.delete(botMessage(discord, channel));
  const asked = discord.people.say(channel, bob, "**second** question <@1> about `x`?", { mentionBot: true });
  const second = await message(1);
  const opened = discord.requests.filter(({ route }) => route === OPEN);
  return { ...stage, first, second, asked, opened };
}

describe("threads that the bot opens on Discord", () => {
  test("with threads on, the bot answers in the channel if questions come faster than it can open threads", async () => {
    // The simulator allows ten in five seconds, and fails the test if it must refuse one.
    const { discord, channel, ada, message } = await startStage({ threads: "on" });
    for (let index = 0; index < 14; index++)
      discord.people.say(channel, ada, `question ${index}`, { mentionBot: true });
    const asked = await Promise.all(Array.from({ length: 14 }, (_, index) => message(index)));
    expect(asked.filter(({ reply }) => reply.threadId !== undefined)).toHaveLength(10);
    expect(asked.slice(10).every(({ conversationId }) => conversationId.startsWith(`discord:${channel.id}:`))).toBe(
      true,
    );
  });

  test("with threads on auto, a question next to a growing answer gets its own thread, named after the question", async () => {
    const { guild, channel, first, second, asked, opened, discord, adapter } = await askTwice("auto");
    expect(first.reply.channelId).toBe(channel.id);
    expect(second.conversationId).toBe(`discord:${asked.id}`);
    expect(second.reply).toEqual({
      platform: "discord",
      channelId: channel.id,
      threadId: asked.id,
      workspaceId: guild.id,
    });
    expect(opened.map(({ body }) => (body as { name: string }).name)).toEqual([
      expect.stringMatching(/^second question .* about x\?$/),
    ]);
    await adapter.sink(second.reply, NO_RIGHT).post(draft("Here"), "m", signal);
    expect(discord.requests.at(-1)?.params).toEqual({ channel: asked.id });
  });

  test("with threads on auto, a question gets its own thread even if the first answer has no text yet", async () => {
    const { discord, channel, ada, bob, message } = await startStage({ threads: "auto" });
    for (const person of [ada, bob]) discord.people.say(channel, person, "a question", { mentionBot: true });
    expect((await message(0)).reply.threadId).toBeUndefined();
    expect((await message(1)).reply.threadId).toBeDefined();
  });

  test.each([
    ["auto while the channel is quiet", "auto", { isOver: true }],
    ["auto once the growing answer is deleted", "auto", { isDeleted: true }],
    ["off", "off", {}],
  ] as const)("with threads on Discord set to %s, the bot answers in the channel", async (_, mode, options) => {
    const { channel, second, opened } = await askTwice(mode, options);
    expect(second.reply).toMatchObject({ channelId: channel.id, replyToId: second.messageId });
    expect(opened).toEqual([]);
  });

  test("a follow-up question opens no thread", async () => {
    const { discord, channel, ada, message } = await askTwice("auto");
    discord.people.say(channel, ada, "go on", { replyTo: botMessage(discord, channel) });
    expect((await message(2)).reply.threadId).toBeUndefined();
  });

  test("the bot tries to open no thread without the permission, and answers in the channel", async () => {
    const { discord, channel, ada, message } = await startStage({ threads: "on" });
    discord.overwrite(channel, discord.bot.id, { deny: ["CreatePublicThreads"] });
    discord.people.say(channel, ada, "a question", { mentionBot: true });
    expect((await message(0)).reply.threadId).toBeUndefined();
    expect(discord.requests.filter(({ route }) => route === OPEN)).toEqual([]);
  });

  test("the bot answers in the channel if Discord refuses a thread", async () => {
    const { discord, channel, ada, message } = await startStage({
      threads: "on",
      simulator: { rules: { maxActiveThreads: 0 } },
    });
    discord.people.say(channel, ada, "a question", { mentionBot: true });
    expect((await message(0)).reply.threadId).toBeUndefined();
  });

  test("a thread has the id of the message that it starts at", async () => {
    const place = createPlaceQuestion({
      mode: "on",
      api: { call: async () => ({ data: { id: "7" } }), settled: async () => {} },
      activity: createActivity(Date.now),
      rooms: { ...NO_ROOMS, mayOpenThread: () => true },
      log: silent,
    });
    expect(await place(question("what now?"), { channelId: "general", messageId: "1" })).toMatchObject({
      conversationId: "discord:7",
      reply: { channelId: "general", threadId: "7" },
    });
  });

  test("a thread belongs to the category of its channel, whose rules apply in it", async () => {
    const { discord, guild, ada, message } = await startStage({ threads: "on" });
    const channel = discord.addChannel(guild, "support");
    const [session] = discord.gateway.sessions;
    const category = { id: "900000000000000001", guild_id: guild.id, type: 4, name: "Customers" };
    session?.dispatch("CHANNEL_CREATE", category);
    session?.dispatch("CHANNEL_UPDATE", {
      id: channel.id,
      guild_id: guild.id,
      type: 0,
      name: "support",
      parent_id: category.id,
    });
    discord.people.say(channel, ada, "a question", { mentionBot: true });
    const { reply, messageId } = await message(0);
    expect(reply).toEqual({
      platform: "discord",
      channelId: channel.id,
      threadId: messageId.split(":").at(-1),
      categoryId: category.id,
      workspaceId: guild.id,
    });
  });

  test("the bot uses a thread that already exists for the message", async () => {
    const { discord, channel, ada, message } = await startStage({ threads: "on" });
    discord.faults.slow(OPEN, 100);
    const asked = discord.people.say(channel, ada, "a question", { mentionBot: true });
    await discord.until(() => discord.requests.some(({ route }) => route === OPEN));
    discord.people.openThread(asked, ada, "mine");
    expect((await message(0)).conversationId).toBe(`discord:${asked.id}`);
    expect(discord.requests.find(({ route }) => route === OPEN)?.status).toBe(400);
  });

  test("a thread gets a short name from any question", async () => {
    const { discord, channel, ada, message } = await startStage({ threads: "on" });
    discord.people.say(channel, ada, "🎉 word ".repeat(100), { mentionBot: true });
    discord.people.say(channel, ada, "# `` https://a.example/x\n", { mentionBot: true });
    await message(1);
    const names = discord.requests
      .filter(({ route }) => route === OPEN)
      .map(({ body }) => (body as { name: string }).name);
    expect(names[0]).toMatch(/^🎉 word .*…$/u);
    expect(Array.from(names[0] ?? "").length).toBeLessThanOrEqual(90);
    expect(names[1]).toBe("A question of ada");
  });
});

function start() {
  let nowMs = 0;
  return { activity: createActivity(() => nowMs), pass: (ms: number) => void (nowMs += ms) };
}

function shown(id: string, ...customIds: string[]) {
  const components = [{ type: 1, components: customIds.map((custom_id) => ({ type: 2, custom_id })) }];
  return { id, channel_id: "c", components: components as never };
}

const stop = (root: string) => toCustomId({ action: "stop", turnId: "t", root });

describe("the activity of a channel", () => {
  test("an answer of another process makes a channel busy", () => {
    const { activity } = start();
    activity.see(shown("a", stop("q")));
    expect(activity.isBusy("c")).toBe(true);
    activity.see(shown("a", toCustomId({ action: "retry", turnId: "t", root: "q" })));
    expect(activity.isBusy("c")).toBe(false);
  });

  test("a channel is busy while one of several answers is growing", () => {
    const { activity } = start();
    activity.see(shown("a", stop("q")));
    activity.see(shown("b", stop("r")));
    activity.see(shown("a"));
    expect(activity.isBusy("c")).toBe(true);
    activity.see(shown("b"));
    expect(activity.isBusy("c")).toBe(false);
  });

  test("a channel is quiet again when its growing message is deleted, but not when another message is", () => {
    const { activity } = start();
    activity.see(shown("a", stop("q")));
    activity.forget({ id: "b", channel_id: "c" });
    expect(activity.isBusy("c")).toBe(true);
    activity.forget({ id: "a", channel_id: "c" });
    expect(activity.isBusy("c")).toBe(false);
  });

  test("an answer without an edit for two minutes counts as finished", () => {
    const { activity, pass } = start();
    activity.begin("c", "q");
    pass(120_000);
    expect(activity.isBusy("c")).toBe(false);
  });
});
