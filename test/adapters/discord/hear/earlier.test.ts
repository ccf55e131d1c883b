import { describe, expect, test } from "vitest";
import type { SayOptions } from "../../../../lab/discord-sim/people.ts";
import type { Channel } from "../../../../lab/discord-sim/world.ts";
import type { EarlierMessage, EarlierRange, MessageEvent } from "../../../../src/port/events.ts";
import { type Stage, type StageOptions, signal, startAdapter, startStage } from "../stage.ts";

const bytes = new Uint8Array([1]);

async function startEarlier(options: StageOptions = {}) {
  const stage = await startStage(options);
  const { discord, adapter, ada, message } = stage;
  /** Asks in a channel or thread, and reads the messages before the question. */
  async function ask(place: Channel, text = "and you?", options?: SayOptions) {
    const said = discord.people.say(place, ada, text, { mentionBot: true, ...options });
    const event = await question(said.id);
    return { event, earlier: await read({ adapter }, event) };
  }
  /** In a thread, the bot also receives messages that do not address it. */
  async function question(id = ""): Promise<MessageEvent> {
    for (let index = 0; ; index++) {
      const event = await message(index);
      if (event.addressed === "bot" && event.messageId.endsWith(id)) return event;
    }
  }
  return { ...stage, ask, question };
}

async function read(
  { adapter }: Pick<Stage, "adapter">,
  event: MessageEvent,
  range: Partial<EarlierRange> = {},
): Promise<EarlierMessage[]> {
  return (await adapter.readEarlier?.(event, { maxMessages: 400, ...range }, signal))?.messages ?? [];
}

const texts = (messages: readonly EarlierMessage[]) => messages.map(({ author, text }) => `${author.name}: ${text}`);

describe("the messages before a question", () => {
  test("earlier messages of a thread are those that users and apps wrote above the question, oldest first", async () => {
    const { discord, guild, channel, ada, bob, ask } = await startEarlier();
    const other = discord.addBot("other", guild);
    const thread = discord.people.openThread(channel, bob, "thread");
    discord.people.say(thread, bob, "one", { attachments: [{ name: "a.png", bytes }] });
    discord.people.say(thread, other, "beep");
    discord.people.sayAsWebhook(thread, "hook", "boop");
    discord.people.say(thread, ada, "two");
    const { earlier } = await ask(thread);
    expect(texts(earlier)).toEqual(["bob: one", "other: beep", "hook: boop", "ada: two"]);
    expect(earlier.map(({ by }) => by)).toEqual([undefined, "app", "app", undefined]);
    expect(earlier[0]).toMatchObject({ author: { id: bob.id }, attachments: [{ name: "a.png", sizeBytes: 1 }] });
    expect(earlier[0]?.messageId).toMatch(/^discord:\d+:\d+$/);
    expect(JSON.parse(JSON.stringify(earlier))).toEqual(earlier);
  });

  test("earlier messages of a long thread are its newest ones and its first one", async () => {
    const { discord, adapter, guild, channel, bob, ask } = await startEarlier();
    const forum = discord.addChannel(guild, "forum", { kind: "forum" });
    const root = discord.people.say(channel, bob, "the root of it");
    const post = discord.people.postInForum(forum, bob, "title", "the root of it");
    for (const thread of [discord.people.openThread(root, bob, "thread"), post]) {
      for (let index = 0; index < 150; index++) discord.people.say(thread, bob, `${index}`);
      const { event, earlier } = await ask(thread);
      expect(earlier).toHaveLength(151);
      const newest = await adapter.readEarlier?.(event, { maxMessages: 110 }, signal);
      expect(newest?.messages.map(({ text }) => text)).toEqual([
        "the root of it",
        ...Array.from({ length: 110 }, (_, index) => `${index + 40}`),
      ]);
      expect([newest?.isPartial, newest?.messages[0]?.isRoot]).toEqual([true, true]);
    }
  });

  test("a channel has no earlier messages since a time, because no setting makes it one conversation", async () => {
    const { discord, adapter, channel, ada, bob, ask } = await startEarlier();
    const two = discord.people.say(channel, bob, "two", { replyTo: discord.people.say(channel, ada, "one") });
    const { event } = await ask(channel, "?", { replyTo: two });
    expect(await read({ adapter }, event, { since: event.at - 1_000 })).toEqual([]);
  });

  test("earlier messages contain names, not ids, and a reply among them does not quote the message above", async () => {
    const { discord, channel, ada, bob, ask } = await startEarlier();
    const thread = discord.people.openThread(channel, bob, "thread");
    const one = discord.people.say(thread, bob, "one");
    discord.people.say(thread, ada, `<@${bob.id}> look at <#${channel.id}>`, { replyTo: one });
    expect(texts((await ask(thread)).earlier)).toEqual(["bob: one", "ada: @bob look at #general"]);
  });

  test("earlier messages in a channel are the chain of replies that the question continues, and no other messages", async () => {
    const { discord, channel, ada, bob, ask } = await startEarlier();
    const one = discord.people.say(channel, ada, "one");
    discord.people.say(channel, bob, "chatter");
    const two = discord.people.say(channel, bob, "two", { replyTo: one });
    const three = discord.people.say(channel, bob, "three", { replyTo: two });
    const { event, earlier } = await ask(channel, "and you?", { replyTo: three });
    expect(texts(earlier)).toEqual(["ada: one", "bob: two"]);
    // The question already quotes the message that it replies to.
    expect(event.text).toBe("In reply to bob:\n> three\n\nand you?");
  });

  test("earlier messages in a channel include the user's own message that the question replies to", async () => {
    const { discord, channel, ada, ask } = await startEarlier();
    const own = discord.people.say(channel, ada, "I drew a cat");
    const { event, earlier } = await ask(channel, "is it good?", { replyTo: own });
    expect(event.text).toBe("is it good?");
    expect(texts(earlier)).toEqual(["ada: I drew a cat"]);
  });

  test("a chain of replies ends at a deleted message", async () => {
    const { discord, channel, bob, ask } = await startEarlier();
    const [one, two] = [discord.people.say(channel, bob, "one"), discord.people.say(channel, bob, "two")];
    const three = discord.people.say(channel, bob, "three", { replyTo: two });
    const four = discord.people.say(channel, bob, "four", { replyTo: three });
    discord.people.delete(two);
    discord.people.delete(one);
    expect(texts((await ask(channel, "?", { replyTo: four })).earlier)).toEqual(["bob: three"]);
  });

  test("the bot looks up no earlier messages for a mention in a channel, a question with its own thread, or a direct question", async () => {
    const { discord, channel, ada, bob, message, adapter } = await startEarlier({ threads: "on" });
    discord.people.say(channel, bob, "chatter");
    discord.people.say(channel, ada, "question", { mentionBot: true });
    discord.people.say(discord.openDm(ada), ada, "direct");
    const events = [await message(0), await message(1)];
    const asked = discord.requests.filter(({ route }) => route.startsWith("GET /channels")).length;
    for (const event of events) expect(await read({ adapter }, event)).toEqual([]);
    expect(discord.requests.filter(({ route }) => route.startsWith("GET /channels"))).toHaveLength(asked);
  });

  test("a question has no earlier messages if the bot cannot read the channel or does not know it", async () => {
    const { discord, channel, bob, ada, question, adapter } = await startEarlier({ simulator: { allow: "anything" } });
    const thread = discord.people.openThread(channel, bob, "thread");
    discord.people.say(thread, bob, "secret");
    discord.overwrite(channel, discord.bot.id, { deny: ["ReadMessageHistory"] });
    discord.people.say(thread, ada, "?", { mentionBot: true });
    const event = await question();
    expect(await read({ adapter }, event)).toEqual([]);
    discord.removeChannel(thread);
    await expect(read({ adapter }, event)).rejects.toThrow();
  });

  test("a question asked with /ask has earlier messages too", async () => {
    const { discord, adapter, channel, ada, bob, question } = await startEarlier();
    await discord.until(() => discord.commands().length > 0);
    const thread = discord.people.openThread(channel, bob, "thread");
    discord.people.say(thread, bob, "one");
    discord.people.command(thread, ada, "ask", { prompt: "and you?" });
    expect(texts(await read({ adapter }, await question()))).toEqual(["bob: one"]);
  });

  test("a process that never listened can read earlier messages, and looks up the names in these messages", async () => {
    const { discord, guild, channel, bob, ask } = await startEarlier();
    const crew = discord.addRole(guild, "crew");
    const thread = discord.people.openThread(channel, bob, "thread");
    discord.people.say(thread, bob, `one for <@&${crew.id}> in <#${channel.id}>, not in <#123456789012345678>`);
    const { event, earlier } = await ask(thread);
    const said = [`bob: one for @crew in #${channel.name}, not in <#123456789012345678>`];
    expect(texts(earlier)).toEqual(said);
    const other = await startAdapter(discord, { listens: false });
    expect(texts(await read(other, event))).toEqual(said);
  });
});

describe("the channel around a question", () => {
  async function around({ adapter }: Stage, { reply, messageId }: MessageEvent, more: string[] = [], count = 15) {
    return (await adapter.readChannel?.(reply, [messageId, ...more], count, signal)) ?? [];
  }

  test("the channel around a question consists of its last messages before the question, oldest first, with cards as text", async () => {
    const stage = await startEarlier();
    const { discord, guild, channel, ada, bob, ask } = stage;
    discord.people.say(channel, ada, "one");
    discord.people.sayAsWebhook(channel, "CI", "", {
      embeds: [{ type: "rich", title: "Build 7 failed", color: 0xff0000 }],
    });
    discord.people.say(channel, bob, "", { attachments: [{ name: "log.txt", bytes }] });
    discord.people.say(channel, discord.addUser("new", guild), "", { type: 7 });
    const { event } = await ask(channel);
    discord.people.say(channel, bob, "after it");
    const found = await around(stage, event);
    expect(texts(found)).toEqual(["ada: one", "CI: (red) Build 7 failed", "bob: "]);
    expect(found.map(({ by }) => by)).toEqual([undefined, "app", undefined]);
    expect(texts(await around(stage, event, [], 2))).toEqual(["bob: "]);
  });

  test("one call reads the channel for five simultaneous questions, including the messages between the questions", async () => {
    const stage = await startEarlier();
    const { discord, channel, ada, bob } = stage;
    discord.people.say(channel, bob, "one");
    const questions: MessageEvent[] = [];
    for (let count = 0; count < 5; count++) {
      discord.people.say(channel, ada, `question ${count}`, { mentionBot: true });
      questions.push(await stage.message(count));
      discord.people.say(channel, bob, `and ${count}`);
    }
    const pages = () => discord.requests.filter(({ route }) => route === "GET /channels/:channel/messages");
    const before = pages().length;
    const found = await Promise.all(questions.map((question) => around(stage, question, [], 3)));
    expect(pages().length - before).toBe(1);
    expect(found.map(texts)).toEqual([
      ["bob: one"],
      ["bob: one", "ada: @palaver question 0", "bob: and 0"],
      ...[2, 3, 4].map((count) => [
        `bob: and ${count - 2}`,
        `ada: @palaver question ${count - 1}`,
        `bob: and ${count - 1}`,
      ]),
    ]);
  });

  test("a question can read the channel around it from the thread that it opened, and from no other thread", async () => {
    const stage = await startEarlier({ threads: "on" });
    const { discord, channel, ada, bob, ask } = stage;
    discord.people.say(channel, bob, "one");
    const { event } = await ask(channel);
    expect(texts(await around(stage, event))).toEqual(["bob: one"]);
    const thread = discord.places().find(({ id }) => event.messageId.endsWith(id)) as Channel;
    discord.people.say(thread, ada, "and then?");
    const later = await stage.message(1);
    expect(texts(await around(stage, later, [event.messageId]))).toEqual(["bob: one"]);
    expect(await around(stage, later)).toEqual([]);
    const other = discord.people.openThread(channel, bob, "of people");
    discord.people.say(other, ada, "?", { mentionBot: true });
    expect(await around(stage, await stage.message(2))).toEqual([]);
  });

  test("a question gets no channel messages in a direct conversation, or if the bot cannot read the channel", async () => {
    const stage = await startEarlier();
    const { discord, channel, ada, bob } = stage;
    discord.people.say(discord.openDm(ada), ada, "direct");
    expect(await around(stage, await stage.message(0))).toEqual([]);
    discord.people.say(channel, bob, "one");
    discord.overwrite(channel, discord.bot.id, { deny: ["ReadMessageHistory"] });
    discord.people.say(channel, ada, "?", { mentionBot: true });
    expect(await around(stage, await stage.message(1))).toEqual([]);
  });
});
