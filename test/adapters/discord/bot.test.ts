import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { toDiscordMarkdown } from "../../../adapters/discord/write/markdown.ts";
import type { Fault } from "../../../lab/discord-sim/faults.ts";
import { type Channel, shown } from "../../../lab/discord-sim/world.ts";
import { isOnRedis } from "../../../lab/support/bot-store.ts";
import type { Discord } from "../../support/discord.ts";
import { finished, startBot, startGuild } from "./bot-stage.ts";
import { botMessage, botMessages, botTexts } from "./stage.ts";

const POST = "POST /channels/:channel/messages";
const EDIT = "PATCH /channels/:channel/messages/:message";
const FAULTS: [route: string, fault: Fault][] = [
  [POST, { status: 500 }],
  [POST, { status: 502, when: "after" }],
  [POST, { status: "reset", when: "after" }],
  [POST, { status: 429, retryAfterMs: 50 }],
  [EDIT, { status: 503, times: 2 }],
  [EDIT, { status: "reset" }],
];
const WORDS = Array.from({ length: 40 }, (_, index) => `word ${index} `);

test("after /listen on, the bot also answers Discord messages that mention no one", async () => {
  const bot = await startGuild({ isListening: true, scripts: [["Soup."], ["Tea."]] });
  const { discord, guild, channel, ada, bob, requests, idle } = bot;
  discord.people.say(channel, discord.addBot("other", guild), "I am a bot.");
  discord.people.say(channel, ada, `<@${bob.id}> what do you think?`);
  const said = discord.people.say(channel, bob, "Soup or salad?");
  await finished(bot, channel);
  discord.people.edit(said, "Tea or coffee?");
  await discord.until(() => botTexts(discord, channel)[0] === "Tea.");
  await idle();
  expect(requests.map(({ messages }) => messages.at(-1)?.content)).toEqual([
    "bob: Soup or salad?",
    "bob: Tea or coffee?",
  ]);
});

describe("a forward on Discord", () => {
  const start = async (scripts: string[][]) => {
    const bot = await startGuild({ scripts });
    const news = bot.discord.addChannel(bot.guild, "news");
    const said = bot.discord.people.say(news, bot.bob, "The lift is broken.", {
      attachments: [{ name: "lift.txt", bytes: Buffer.from("It stands on floor 3.") }],
    });
    return { ...bot, said };
  };
  const asked = (content: unknown) => JSON.stringify(content);

  test("a forward and its comment are one question in a direct conversation, with the forwarded text and files", async () => {
    const bot = await start([["On floor 3."]]);
    const { discord, ada, said, requests } = bot;
    const direct = discord.openDm(ada);
    discord.people.forward(said, direct, ada);
    discord.people.say(direct, ada, "where is it?");
    expect(await finished(bot, direct)).toEqual(["On floor 3."]);
    expect(requests).toHaveLength(1);
    const content = asked(requests[0]?.messages.at(-1)?.content);
    expect(content).toMatch(/where is it\?\\n\\nForwarded:\\n> The lift is broken\./);
    expect(content).toContain("It stands on floor 3.");
    expect(content.split("The lift is broken")).toHaveLength(2);
  });

  test("a forward and its comment are one question in a thread, even after an edit of the comment", async () => {
    const bot = await start([["Hello."], ["Broken."], ["Since Monday."]]);
    const { discord, channel, ada, said, requests, idle } = bot;
    const thread = discord.people.openThread(channel, ada, "lift");
    discord.people.say(thread, ada, "hello", { mentionBot: true });
    await finished(bot, thread);
    discord.people.forward(said, thread, ada);
    const comment = discord.people.say(thread, ada, "what is it?");
    expect(await finished(bot, thread, 2)).toEqual(["Hello.", "Broken."]);
    discord.people.edit(comment, "since when?");
    await discord.until(() => botTexts(discord, thread).includes("Since Monday."));
    await idle();
    expect(requests).toHaveLength(3);
    const content = asked(requests[2]?.messages.at(-1)?.content);
    expect(content).toMatch(/since when\?\\n\\nForwarded:\\n> The lift is broken\./);
    expect(asked(requests[2]?.messages).split("The lift is broken")).toHaveLength(2);
  });

  test("the model reads a forward once if its comment mentions the bot, and no longer once the forward is deleted", async () => {
    const bot = await start([["Broken."], ["I see no message."]]);
    const { discord, channel, ada, said, requests, idle } = bot;
    const forward = discord.people.forward(said, channel, ada);
    discord.people.say(channel, ada, "what is it?", { mentionBot: true });
    expect(await finished(bot, channel)).toEqual(["Broken."]);
    expect(asked(requests[0]?.messages).split("The lift is broken")).toHaveLength(2);
    discord.people.delete(forward);
    await discord.until(() => botTexts(discord, channel).includes("I see no message."));
    await idle();
    expect(asked(requests[1]?.messages)).not.toContain("The lift is broken");
  });

  test("a forward alone is a question, and a later message is another one", async () => {
    const bot = await start([["Broken."], ["On floor 3."]]);
    const { discord, ada, said, requests } = bot;
    const direct = discord.openDm(ada);
    discord.people.forward(said, direct, ada);
    expect(await finished(bot, direct)).toEqual(["Broken."]);
    discord.people.say(direct, ada, "where is it?");
    expect(await finished(bot, direct, 2)).toEqual(["Broken.", "On floor 3."]);
    expect(requests[1]?.messages.at(-1)?.content).toBe("where is it?");
  });
});

describe("a file for one user on Discord", () => {
  const names = (channel: Channel, discord: Discord) =>
    botMessages(discord, channel).flatMap((message) => shown(message).attachments.map(({ name }) => name));

  test("the bot tells a user who accepts no direct messages why their private file does not arrive", async () => {
    const bot = await startGuild({ scripts: [], simulator: { allow: { "invalid-request": 4 } } });
    const { discord, channel, ada } = bot;
    ada.acceptsDms = false;
    discord.people.say(channel, ada, "!export", { mentionBot: true });
    const [said] = await finished(bot, channel);
    expect(said).toMatch(/^I couldn't send you the file/);
    expect(names(channel, discord)).toEqual([]);
  });

  test("the bot sends a private file that a public /ask requested in a direct message", async () => {
    const bot = await startGuild({ scripts: [] });
    const { discord, channel, ada } = bot;
    await discord.until(() => discord.commands().length > 0);
    discord.people.command(channel, ada, "ask", { prompt: "!export" });
    expect(await finished(bot, channel)).toEqual(["I sent you the file in a direct message."]);
    expect(names(discord.openDm(ada), discord)).toEqual(["export.json"]);
    expect(names(channel, discord)).toEqual([]);
  });
});

describe("a model with visible reasoning, on Discord", () => {
  const THOUGHT = { reasoning: "A greeting.\nI greet || back." };

  test("Discord shows typing while the model thinks, and none of its thoughts", async () => {
    const hold = Promise.withResolvers<void>();
    const bot = await startGuild({ scripts: [[THOUGHT, hold.promise, "Hello."]] });
    const { discord, channel, ada } = bot;
    discord.people.say(channel, ada, "hi", { mentionBot: true });
    await discord.until(() => discord.requests.some(({ route }) => route === "POST /channels/:channel/typing"));
    expect(botTexts(discord, channel)).toEqual([]);
    hold.resolve();
    expect(await finished(bot, channel)).toEqual(["Hello."]);
  });

  test("the model's thoughts are a spoiler above the answer if the channel turned them on", async () => {
    const bot = await startGuild({ scripts: [[THOUGHT, "Hello."]] });
    const { discord, ada } = bot;
    const direct = discord.openDm(ada);
    discord.people.say(direct, ada, "!model --thinking shown");
    await finished(bot, direct);
    discord.people.say(direct, ada, "hi");
    expect((await finished(bot, direct, 2)).at(-1)).toMatch(
      /^> \*\*Thought for \d+ s\*\*\n> \|\| A greeting\. I greet \| \| back\. \|\|\n\nHello\.$/,
    );
  });
});

describe("the bot on Discord", () => {
  test("a reply continues the conversation, and a new mention starts another one", async () => {
    const bot = await startGuild({ scripts: [["One."], ["Two."], ["Three."]] });
    const { discord, channel, ada, requests } = bot;
    discord.people.say(channel, ada, "first", { mentionBot: true });
    await finished(bot, channel);
    discord.people.say(channel, ada, "second", { replyTo: botMessage(discord, channel) });
    await finished(bot, channel, 2);
    discord.people.say(channel, ada, "apart", { mentionBot: true });
    await finished(bot, channel, 3);
    const asked = requests.map(({ messages }) => messages.map(({ content }) => JSON.stringify(content)).join());
    expect(asked[1]).toMatch(/first.*One\..*second/s);
    // The second conversation quotes the first one.
    expect(requests[2]?.messages.map(({ role }) => role)).toEqual(["system", "user", "user"]);
    expect(asked[2]).toMatch(/> @palaver first.*> One\..*> second.*> Two\..*","apart"$/s);
  });

  test("a long answer fills several messages without losing a word", async () => {
    const text = Array.from({ length: 120 }, (_, index) => `${index}. A line of || text with **marks**.`).join("\n");
    const bot = await startGuild({ scripts: [text.match(/[\s\S]{1,50}/g) ?? []] });
    const { discord, channel, ada } = bot;
    discord.people.say(channel, ada, "long", { mentionBot: true });
    await discord.until(() => botMessages(discord, channel).length >= 2);
    const texts = await finished(bot, channel, 2);
    for (const one of texts) expect(Array.from(one).length).toBeLessThanOrEqual(2_000);
    expect(texts.join("\n")).toBe(toDiscordMarkdown(text));
  });

  test("the start of an endless answer fills five messages, and a file contains the whole answer", async () => {
    const text = Array.from({ length: 400 }, (_, index) => `${index}. A line of text with **marks** in it.`).join("\n");
    const simulator = { limits: { messages: { kind: "fixed" as const, limit: 50, windowMs: 5_000 } } };
    const bot = await startGuild({ scripts: [text.match(/[\s\S]{1,500}/g) ?? []], simulator });
    const { discord, channel, ada } = bot;
    discord.people.say(channel, ada, "endless", { mentionBot: true });
    await finished(bot, channel, 5);
    const messages = botMessages(discord, channel);
    // The line that announces the file comes before the file.
    expect(messages).toHaveLength(5 + 2);
    const [file] = messages.flatMap((message) => shown(message).attachments);
    expect(file?.name).toBe("answer.md");
    expect(new TextDecoder().decode(file?.bytes)).toContain("399. A line of text");
  });

  test("an answer whose rest AutoMod blocks ends with the text already shown, and says so", async () => {
    const gate = Promise.withResolvers<void>();
    const bot = await startGuild({ scripts: [["Once upon a time", gate.promise, " they swore"]] });
    const { discord, channel, ada } = bot;
    discord.people.say(channel, ada, "tell me", { mentionBot: true });
    await discord.until(() => botTexts(discord, channel)[0]?.startsWith("Once upon") === true);
    discord.faults.failNext(EDIT, { status: 400, code: 200000 });
    gate.resolve();
    const [text] = await finished(bot, channel);
    expect(text).toMatch(/^Once upon a time\n\n_A filter here blocked .*[Rr]ephrase your request/);
  });

  test("Stop appears before the first word, in the message that becomes the answer", async () => {
    const hold = Promise.withResolvers<void>();
    const bot = await startGuild({ scripts: [[hold.promise, "Hello."]] });
    const { discord, channel, ada } = bot;
    discord.people.say(channel, ada, "hi", { mentionBot: true });
    await discord.until(() => /waiting for the model/i.test(botTexts(discord, channel)[0] ?? ""));
    expect(JSON.stringify(shown(botMessage(discord, channel)).components)).toContain("Stop");
    hold.resolve();
    expect(await finished(bot, channel)).toEqual(["Hello."]);
  });

  test("five answers at once in one channel hit no rate limit", async () => {
    const bot = await startGuild({ scripts: [WORDS], simulator: { latencyMs: 20 } });
    const { discord, channel, guild } = bot;
    for (let count = 0; count < 5; count++) {
      discord.people.say(channel, discord.addUser(`person-${count}`, guild), "tell me", { mentionBot: true });
    }
    expect(await finished(bot, channel, 5)).toEqual(Array.from({ length: 5 }, () => WORDS.join("").trim()));
    expect(discord.requests.filter(({ status }) => status === 429)).toEqual([]);
  });

  test("the bot opens a thread for a question that arrives next to a growing answer", async () => {
    const gate = Promise.withResolvers<void>();
    const bot = await startGuild({ threads: "auto", scripts: [["First", gate.promise], ["Second."]] });
    const { discord, channel, ada, bob } = bot;
    discord.people.say(channel, ada, "one", { mentionBot: true });
    await discord.until(() => botMessages(discord, channel).length === 1);
    const asked = discord.people.say(channel, bob, "two", { mentionBot: true });
    const inThread = () =>
      discord.requests.find(({ params, route }) => params["channel"] === asked.id && route === POST);
    await discord.until(() => inThread()?.status === 200);
    expect(inThread()?.body).toMatchObject({ content: "Second." });
    gate.resolve();
    expect(await finished(bot, channel)).toEqual(["First"]);
  });

  test("each /ask gets its own answer, even while several wait in a thread with other messages", async () => {
    const gate = Promise.withResolvers<void>();
    const bot = await startGuild({ scripts: [[gate.promise, "One."], ["Two."], ["Three."], ["Four."]] });
    const { discord, channel, ada } = bot;
    await discord.until(() => discord.commands().length > 0);
    const thread = discord.people.openThread(channel, ada, "talk");
    discord.people.say(thread, ada, "first", { mentionBot: true });
    await discord.until(() => bot.requests.length === 1);
    for (const prompt of ["second", "third"]) discord.people.command(thread, ada, "ask", { prompt });
    discord.people.say(thread, ada, "fourth", { mentionBot: true });
    // The first question counts as waiting until it is answered.
    await discord.until(() => bot.waiting() >= 4);
    gate.resolve();
    await bot.idle();
    expect(botTexts(discord, thread).toSorted()).toEqual(["Four.", "One.", "Three.", "Two."]);
  });

  test("the buttons of a private answer work long after its interaction has expired", async () => {
    const bot = await startGuild({ scripts: [["One."], ["Two."]] });
    const { discord, channel, ada } = bot;
    await discord.until(() => discord.commands().length > 0);
    discord.people.command(channel, ada, "ask", { prompt: "psst", private: true });
    expect(await finished(bot, channel)).toEqual(["One."]);
    discord.clock.advance(30 * 60_000);
    discord.people.press(botMessage(discord, channel), ada, "Regenerate");
    await discord.until(() => botTexts(discord, channel)[0] === "Two.");
    await bot.idle();
    discord.clock.advance(30 * 60_000);
    discord.people.press(botMessage(discord, channel), ada, "‹ 2/2");
    await discord.until(() => botTexts(discord, channel)[0]?.startsWith("One.") === true);
    await bot.idle();
    expect(botMessages(discord, channel).map(({ ephemeralFor }) => ephemeralFor)).toEqual([ada.id]);
  });

  test.each(["a channel", "a thread", "a direct conversation"])(
    "the bot keeps a private question asked in %s out of later answers to others",
    async (name) => {
      const bot = await startGuild({ scripts: [["My secret answer."], ["A public answer."], ["Another."]] });
      const { discord, channel, ada, bob, requests } = bot;
      await discord.until(() => discord.commands().length > 0);
      const isDirect = name === "a direct conversation";
      const place =
        name === "a thread"
          ? discord.people.openThread(channel, ada, "talk")
          : isDirect
            ? discord.openDm(ada)
            : channel;
      const speaker = isDirect ? ada : bob;
      discord.people.command(place, ada, "ask", { prompt: "my secret question", private: true });
      expect(await finished(bot, place)).toEqual(["My secret answer."]);
      expect(botMessages(discord, place)[0]?.ephemeralFor).toBe(ada.id);
      discord.people.say(place, speaker, "hello", { mentionBot: !isDirect });
      await finished(bot, place, 2);
      discord.people.command(place, ada, "ask", { prompt: "another question", private: true });
      await finished(bot, place, 3);
      expect(JSON.stringify(requests.slice(1))).not.toMatch(/secret/);
      expect(requests[2]?.messages.map(({ content }) => content)).toEqual(["Be kind.", "another question"]);
    },
  );

  test("the bot answers each question once despite each kind of failure", async () => {
    const limits = { messages: { kind: "fixed" as const, limit: 100, windowMs: 5_000 } };
    const scripts = FAULTS.map((_, index) => [`Answer ${index} `, ...WORDS]);
    const bot = await startGuild({ scripts, simulator: { limits, latencyMs: 2 } });
    const { discord, guild, ada } = bot;
    const channels = FAULTS.map(([route, fault], index) => {
      const channel = discord.addChannel(guild, `room-${index}`);
      discord.faults.failNext(route, fault);
      discord.people.say(channel, ada, `question ${index}`, { mentionBot: true });
      return channel;
    });
    for (const channel of channels) await finished(bot, channel);
    const texts = channels.map((channel) => botTexts(discord, channel));
    expect(texts.flat().toSorted()).toEqual(
      FAULTS.map((_, index) => `Answer ${index} ${WORDS.join("").trim()}`).toSorted(),
    );
    expect(texts.map(({ length }) => length)).toEqual(FAULTS.map(() => 1));
  });

  test.skipIf(isOnRedis)("two processes without a common store write one answer, not two", async () => {
    const gate = Promise.withResolvers<void>();
    const scripts = [["Half", gate.promise, " and half."]];
    // The processes do not know of each other, so their edits can overlap.
    const bot = await startGuild({ scripts, simulator: { allow: { "overlapping-edits": 10 } } });
    const { discord, channel, ada } = bot;
    const other = await startBot({ discord, scripts });
    discord.people.say(channel, ada, "hi", { mentionBot: true });
    const posts = () => discord.requests.filter(({ route, status }) => route === POST && status === 200);
    await discord.until(() => posts().length === 2);
    gate.resolve();
    await Promise.all([bot.idle(), other.idle()]);
    expect(botTexts(discord, channel)).toEqual(["Half and half."]);
  });

  test("two processes on one shard answer each message once", async () => {
    const database = new DatabaseSync(":memory:");
    const bot = await startGuild({ database, scripts: [["Hello."]] });
    const { discord, channel, ada } = bot;
    await startBot({ discord, database, scripts: [["Hello."]] });
    discord.people.say(channel, ada, "hi", { mentionBot: true });
    expect(await finished(bot, channel)).toEqual(["Hello."]);
  });
});
