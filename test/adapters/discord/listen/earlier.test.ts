import { describe, expect, test } from "vitest";
import type { EarlierMessage, MessageEvent } from "../../../../src/port/events.ts";
import type { SayOptions } from "../../../simulators/discord/people.ts";
import type { Channel } from "../../../simulators/discord/world.ts";
import { type Stage, type StageOptions, signal, startAdapter, startStage } from "../stage.ts";

const bytes = new Uint8Array([1]);

async function startEarlier(options: StageOptions = {}) {
  const stage = await startStage(options);
  const { discord, adapter, ada, message } = stage;
  /** Asks in a place, and reads what was said there before. */
  async function ask(place: Channel, text = "and you?", options?: SayOptions) {
    discord.people.say(place, ada, text, { mentionBot: true, ...options });
    const event = await question();
    return { event, earlier: await read({ adapter }, event) };
  }
  /** In a thread the bot hears also what is not said to it. */
  async function question(): Promise<MessageEvent> {
    for (let index = 0; ; index++) {
      const event = await message(index);
      if (event.addressed === "bot") return event;
    }
  }
  return { ...stage, ask, question };
}

async function read({ adapter }: Pick<Stage, "adapter">, event: MessageEvent): Promise<EarlierMessage[]> {
  return (await adapter.readEarlier?.(event, signal)) ?? [];
}

const texts = (messages: readonly EarlierMessage[]) => messages.map(({ author, text }) => `${author.name}: ${text}`);

describe("what was said before the bot was asked", () => {
  test("earlier messages of a thread are what people wrote above the question, oldest first, and nothing of bots", async () => {
    const { discord, guild, channel, ada, bob, ask } = await startEarlier();
    const other = discord.addBot("other", guild);
    const thread = discord.people.openThread(channel, bob, "thread");
    discord.people.say(thread, bob, "one", { attachments: [{ name: "a.png", bytes }] });
    discord.people.say(thread, other, "beep");
    discord.people.sayAsWebhook(thread, "hook", "boop");
    discord.people.say(thread, ada, "two");
    const { earlier } = await ask(thread);
    expect(texts(earlier)).toEqual(["bob: one", "ada: two"]);
    expect(earlier[0]).toMatchObject({ author: { id: bob.id }, attachments: [{ name: "a.png", sizeBytes: 1 }] });
    expect(earlier[0]?.messageId).toMatch(/^discord:\d+:\d+$/);
    expect(JSON.parse(JSON.stringify(earlier))).toEqual(earlier);
  });

  test("earlier messages of a thread on a message begin with that message", async () => {
    const { discord, channel, bob, ask } = await startEarlier();
    const root = discord.people.say(channel, bob, "the root of it");
    const thread = discord.people.openThread(root, bob, "thread");
    discord.people.say(thread, bob, "more");
    const { earlier } = await ask(thread);
    expect(texts(earlier)).toEqual(["bob: the root of it", "bob: more"]);
    expect(earlier[0]?.messageId).toBe(`discord:${channel.id}:${root.id}`);
  });

  test("earlier messages of a forum post begin with the post", async () => {
    const { discord, guild, bob, ask } = await startEarlier();
    const forum = discord.addChannel(guild, "forum", { kind: "forum" });
    const post = discord.people.postInForum(forum, bob, "title", "the post");
    expect(texts((await ask(post)).earlier)).toEqual(["bob: the post"]);
  });

  test("the fifty newest of the earlier messages are read", async () => {
    const { discord, channel, bob, ask } = await startEarlier();
    const thread = discord.people.openThread(channel, bob, "thread");
    for (let index = 0; index < 60; index++) discord.people.say(thread, bob, `${index}`);
    const { earlier } = await ask(thread);
    expect(earlier).toHaveLength(50);
    expect(earlier.at(-1)?.text).toBe("59");
  });

  test("earlier messages name people, not ids, and quote nothing that stands above", async () => {
    const { discord, channel, ada, bob, ask } = await startEarlier();
    const thread = discord.people.openThread(channel, bob, "thread");
    const one = discord.people.say(thread, bob, "one");
    discord.people.say(thread, ada, `<@${bob.id}> look at <#${channel.id}>`, { replyTo: one });
    expect(texts((await ask(thread)).earlier)).toEqual(["bob: one", "ada: @bob look at #general"]);
  });

  test("earlier messages in a channel are the chain of replies that the question continues, not its chatter", async () => {
    const { discord, channel, ada, bob, ask } = await startEarlier();
    const one = discord.people.say(channel, ada, "one");
    discord.people.say(channel, bob, "chatter");
    const two = discord.people.say(channel, bob, "two", { replyTo: one });
    const three = discord.people.say(channel, bob, "three", { replyTo: two });
    const { event, earlier } = await ask(channel, "and you?", { replyTo: three });
    expect(texts(earlier)).toEqual(["ada: one", "bob: two"]);
    // What it answers stands in the question.
    expect(event.text).toBe("In answer to bob:\n> three\n\nand you?");
  });

  test("earlier messages in a channel hold one's own message that the question replies to", async () => {
    const { discord, channel, ada, ask } = await startEarlier();
    const own = discord.people.say(channel, ada, "I drew a cat");
    const { event, earlier } = await ask(channel, "is it good?", { replyTo: own });
    expect(event.text).toBe("is it good?");
    expect(texts(earlier)).toEqual(["ada: I drew a cat"]);
  });

  test("a chain of replies ends where a message of it was deleted", async () => {
    const { discord, channel, bob, ask } = await startEarlier();
    const [one, two] = [discord.people.say(channel, bob, "one"), discord.people.say(channel, bob, "two")];
    const three = discord.people.say(channel, bob, "three", { replyTo: two });
    const four = discord.people.say(channel, bob, "four", { replyTo: three });
    discord.people.delete(two);
    discord.people.delete(one);
    expect(texts((await ask(channel, "?", { replyTo: four })).earlier)).toEqual(["bob: three"]);
  });

  test("a mention in a channel, a question with its own thread and a direct one have no earlier messages, and Discord is not asked", async () => {
    const { discord, channel, ada, bob, message, adapter } = await startEarlier({ threads: "on" });
    discord.people.say(channel, bob, "chatter");
    discord.people.say(channel, ada, "question", { mentionBot: true });
    discord.people.say(discord.openDm(ada), ada, "direct");
    const events = [await message(0), await message(1)];
    const asked = discord.requests.filter(({ route }) => route.startsWith("GET /channels")).length;
    for (const event of events) expect(await read({ adapter }, event)).toEqual([]);
    expect(discord.requests.filter(({ route }) => route.startsWith("GET /channels"))).toHaveLength(asked);
  });

  test("earlier messages are empty where the bot may not read them, or nothing is known", async () => {
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

  test("earlier messages are read by a process that never listened, which asks for the names in them", async () => {
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
