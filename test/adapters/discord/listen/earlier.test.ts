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
  test("in a thread is what people wrote above the question, oldest first, and nothing of bots", async () => {
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

  test("in a thread that hangs on a message begins with that message", async () => {
    const { discord, channel, bob, ask } = await startEarlier();
    const root = discord.people.say(channel, bob, "the root of it");
    const thread = discord.people.openThread(root, bob, "thread");
    discord.people.say(thread, bob, "more");
    const { earlier } = await ask(thread);
    expect(texts(earlier)).toEqual(["bob: the root of it", "bob: more"]);
    expect(earlier[0]?.messageId).toBe(`discord:${channel.id}:${root.id}`);
  });

  test("in a forum post begins with the post", async () => {
    const { discord, guild, bob, ask } = await startEarlier();
    const forum = discord.addChannel(guild, "forum", { kind: "forum" });
    const post = discord.people.postInForum(forum, bob, "title", "the post");
    expect(texts((await ask(post)).earlier)).toEqual(["bob: the post"]);
  });

  test("is no more than the fifty newest messages", async () => {
    const { discord, channel, bob, ask } = await startEarlier();
    const thread = discord.people.openThread(channel, bob, "thread");
    for (let index = 0; index < 60; index++) discord.people.say(thread, bob, `${index}`);
    const { earlier } = await ask(thread);
    expect(earlier).toHaveLength(50);
    expect(earlier.at(-1)?.text).toBe("59");
  });

  test("names people, not ids, and quotes nothing that stands above", async () => {
    const { discord, channel, ada, bob, ask } = await startEarlier();
    const thread = discord.people.openThread(channel, bob, "thread");
    const one = discord.people.say(thread, bob, "one");
    discord.people.say(thread, ada, `<@${bob.id}> look at <#${channel.id}>`, { replyTo: one });
    expect(texts((await ask(thread)).earlier)).toEqual(["bob: one", "ada: @bob look at #general"]);
  });

  test("in a channel is the chain that the question continues, not its chatter", async () => {
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

  test("in a channel is one's own message that the question answers", async () => {
    const { discord, channel, ada, ask } = await startEarlier();
    const own = discord.people.say(channel, ada, "I drew a cat");
    const { event, earlier } = await ask(channel, "is it good?", { replyTo: own });
    expect(event.text).toBe("is it good?");
    expect(texts(earlier)).toEqual(["ada: I drew a cat"]);
  });

  test("ends where a message of the chain was deleted", async () => {
    const { discord, channel, bob, ask } = await startEarlier();
    const [one, two] = [discord.people.say(channel, bob, "one"), discord.people.say(channel, bob, "two")];
    const three = discord.people.say(channel, bob, "three", { replyTo: two });
    const four = discord.people.say(channel, bob, "four", { replyTo: three });
    discord.people.delete(two);
    discord.people.delete(one);
    expect(texts((await ask(channel, "?", { replyTo: four })).earlier)).toEqual(["bob: three"]);
  });

  test("is nothing for a mention in a channel, in a thread of its own, and directly, and Discord is not asked", async () => {
    const { discord, channel, ada, bob, message, adapter } = await startEarlier({ threads: "on" });
    discord.people.say(channel, bob, "chatter");
    discord.people.say(channel, ada, "question", { mentionBot: true });
    discord.people.say(discord.openDm(ada), ada, "direct");
    const events = [await message(0), await message(1)];
    const asked = discord.requests.filter(({ route }) => route.startsWith("GET /channels")).length;
    for (const event of events) expect(await read({ adapter }, event)).toEqual([]);
    expect(discord.requests.filter(({ route }) => route.startsWith("GET /channels"))).toHaveLength(asked);
  });

  test("is nothing where the bot may not read it, or is not known", async () => {
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

  test("is known to a question asked with /ask, too", async () => {
    const { discord, adapter, channel, ada, bob, question } = await startEarlier();
    await discord.until(() => discord.commands().length > 0);
    const thread = discord.people.openThread(channel, bob, "thread");
    discord.people.say(thread, bob, "one");
    discord.people.command(thread, ada, "ask", { prompt: "and you?" });
    expect(texts(await read({ adapter }, await question()))).toEqual(["bob: one"]);
  });

  test("is read by a process that never listened", async () => {
    const { discord, channel, bob, ask } = await startEarlier();
    const thread = discord.people.openThread(channel, bob, "thread");
    discord.people.say(thread, bob, "one");
    const { event } = await ask(thread);
    const other = await startAdapter(discord, { listens: false });
    expect(texts(await read(other, event))).toEqual(["bob: one"]);
  });
});
