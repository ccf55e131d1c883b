import { DatabaseSync } from "node:sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { toDiscordMarkdown } from "../../../adapters/discord/write/markdown.ts";
import type { Fault } from "../../simulators/discord/faults.ts";
import type { Discord } from "../../simulators/discord/index.ts";
import { type Channel, type Message, shown } from "../../simulators/discord/world.ts";
import { isOnRedis } from "../../support/bot-store.ts";
import { startReferenceServers } from "../../support/mcp-world.ts";
import { makeDataDir } from "../../support/service.ts";
import { finished, startBot, startGuild } from "./bot-stage.ts";
import { botMessages, botTexts } from "./stage.ts";

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

test("the model is told on Discord which person said which message, by server nickname", async () => {
  const bot = await startGuild({ scripts: [["One."], ["Two."]] });
  const { discord, guild, channel, ada, requests } = bot;
  const tanaka = discord.addUser("tanaka_t", guild);
  const member = guild.members.get(tanaka.id);
  if (member !== undefined) member.nick = "田中";
  const thread = discord.people.openThread(channel, ada, "lunch");
  discord.people.say(thread, ada, `お昼は <@${tanaka.id}>？`, { mentionBot: true });
  await finished(bot, thread);
  discord.people.say(thread, tanaka, "うどん");
  await finished(bot, thread, 2);
  expect(requests[1]?.messages.slice(1)).toMatchObject([
    { content: "ada: お昼は @田中？", name: "ada" },
    { content: "One." },
    { content: "田中: うどん", name: expect.stringMatching(/^user-/) },
  ]);
});

test("in a Discord channel with /listen on, messages to nobody in particular are answered", async () => {
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

  test("with a comment is one question in a direct conversation, with the forwarded text and its files", async () => {
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

  test("with a comment is one question in a thread that the bot follows, and after an edit of the comment", async () => {
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

  test("reaches the model once if its comment mentions the bot in a channel, and no more after its deletion", async () => {
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

  test("alone is a question, and what follows later is another one", async () => {
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

describe("a file for one person alone on Discord", () => {
  const names = (channel: Channel, discord: Discord) =>
    botMessages(discord, channel).flatMap((message) => shown(message).attachments.map(({ name }) => name));

  test("comes in a direct message where everybody would see it, which says so", async () => {
    const bot = await startGuild({ scripts: [] });
    const { discord, channel, ada } = bot;
    discord.people.say(channel, ada, "!export", { mentionBot: true });
    expect(await finished(bot, channel)).toEqual(["I have sent you the file directly."]);
    expect(names(discord.openDm(ada), discord)).toEqual(["export.json"]);
    expect(names(channel, discord)).toEqual([]);
  });

  test("comes nowhere to somebody who takes no direct messages, and says why", async () => {
    const bot = await startGuild({ scripts: [], simulator: { allow: { "invalid-request": 4 } } });
    const { discord, channel, ada } = bot;
    ada.acceptsDms = false;
    discord.people.say(channel, ada, "!export", { mentionBot: true });
    const [said] = await finished(bot, channel);
    expect(said).toMatch(/^I could not give you the file/);
    expect(names(channel, discord)).toEqual([]);
  });

  test("comes in a direct message also where the public /ask asked for it", async () => {
    const bot = await startGuild({ scripts: [] });
    const { discord, channel, ada } = bot;
    await discord.until(() => discord.commands().length > 0);
    discord.people.command(channel, ada, "ask", { prompt: "!export" });
    expect(await finished(bot, channel)).toEqual(["I have sent you the file directly."]);
    expect(names(discord.openDm(ada), discord)).toEqual(["export.json"]);
    expect(names(channel, discord)).toEqual([]);
  });
});

describe("second thoughts on Discord", () => {
  function answerIn({ discord, channel }: { discord: Discord; channel: Channel }) {
    const [message] = botMessages(discord, channel);
    if (message === undefined) throw new Error("There is no answer.");
    return message;
  }

  test("an edited question is answered once more in its message, which leads back to the answer before", async () => {
    const bot = await startGuild({ scripts: [["Paris."], ["Rome."], ["Oslo."]] });
    const { discord, channel, ada, idle } = bot;
    const asked = discord.people.say(channel, ada, "The capital of France?", { mentionBot: true });
    await finished(bot, channel);
    discord.people.edit(asked, `<@${discord.bot.id}> The capital of Italy?`);
    await discord.until(() => botTexts(discord, channel)[0] === "Rome.");
    await idle();
    discord.people.press(answerIn(bot), ada, "‹ 2/2");
    await discord.until(() => botTexts(discord, channel)[0]?.startsWith("Paris.") === true);
    await idle();
    discord.people.press(answerIn(bot), ada, "1/2 ›");
    await discord.until(() => botTexts(discord, channel)[0] === "Rome.");
    await idle();
    discord.people.press(answerIn(bot), ada, "Regenerate");
    await discord.until(() => botTexts(discord, channel)[0] === "Oslo.");
  });

  test("the model's input is shown only to the person who presses Explain", async () => {
    const bot = await startGuild({ scripts: [["Paris."]] });
    const { discord, channel, ada, bob } = bot;
    discord.people.say(channel, ada, "The capital of France?", { mentionBot: true });
    await finished(bot, channel);
    discord.people.press(answerIn(bot), bob, "What did you see?");
    await discord.until(() => botTexts(discord, channel)[1]?.includes("capital of France?") === true);
    expect(botMessages(discord, channel).map(({ ephemeralFor }) => ephemeralFor)).toEqual([undefined, bob.id]);
  });

  test("a question that was deleted offers to delete its answer", async () => {
    const bot = await startGuild({ scripts: [["Paris."]] });
    const { discord, channel, ada } = bot;
    const asked = discord.people.say(channel, ada, "The capital of France?", { mentionBot: true });
    await finished(bot, channel);
    discord.people.delete(asked);
    await discord.until(() => botTexts(discord, channel)[0]?.includes("was deleted") === true);
    discord.people.press(answerIn(bot), ada, "Delete this answer");
    await discord.until(() => botTexts(discord, channel).length === 0);
  });

  test("a question that has to wait carries a sign until its turn comes", async () => {
    const end = Promise.withResolvers<void>();
    const bot = await startBot({ scripts: [["One,", end.promise, " two."], ["Three."]] });
    const { discord } = bot;
    const ada = discord.addUser("ada");
    const direct = discord.openDm(ada);
    discord.people.say(direct, ada, "count");
    await discord.until(() => botTexts(discord, direct)[0]?.startsWith("One,") === true);
    const second = discord.people.say(direct, ada, "go on");
    await discord.until(() => second.reactions.has("⏳"));
    end.resolve();
    expect(await finished(bot, direct, 2)).toEqual(["One, two.", "Three."]);
    await discord.until(() => !second.reactions.has("⏳"));
  });
});

describe("a model that thinks, on Discord", () => {
  const THOUGHT = { reasoning: "A greeting.\nI greet || back." };

  test("shows that the bot is typing, and none of the thoughts", async () => {
    const hold = Promise.withResolvers<void>();
    const bot = await startGuild({ scripts: [[THOUGHT, hold.promise, "Hello."]] });
    const { discord, channel, ada } = bot;
    discord.people.say(channel, ada, "hi", { mentionBot: true });
    await discord.until(() => discord.requests.some(({ route }) => route === "POST /channels/:channel/typing"));
    expect(botTexts(discord, channel)).toEqual([]);
    hold.resolve();
    expect(await finished(bot, channel)).toEqual(["Hello."]);
  });

  test("shows the thoughts as a spoiler before the answer where the channel asks for them", async () => {
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
  test("answers a mention with a text that grows to the model's own", async () => {
    const bot = await startGuild({ scripts: [WORDS] });
    const { discord, channel, ada } = bot;
    discord.people.say(channel, ada, "tell me", { mentionBot: true });
    expect(await finished(bot, channel)).toEqual([WORDS.join("").trim()]);
    expect(discord.pings).toEqual([]);
  });

  test("goes on in the same conversation when it is replied to, and apart when it is asked anew", async () => {
    const bot = await startGuild({ scripts: [["One."], ["Two."], ["Three."]] });
    const { discord, channel, ada, requests } = bot;
    discord.people.say(channel, ada, "first", { mentionBot: true });
    await finished(bot, channel);
    const [answer] = botMessages(discord, channel);
    discord.people.say(channel, ada, "second", { ...(answer && { replyTo: answer }) });
    await finished(bot, channel, 2);
    discord.people.say(channel, ada, "apart", { mentionBot: true });
    await finished(bot, channel, 3);
    const asked = requests.map(({ messages }) => messages.map(({ content }) => JSON.stringify(content)).join());
    expect(asked[1]).toMatch(/first.*One\..*second/s);
    // What was said there before is quoted to it.
    expect(requests[2]?.messages.map(({ role }) => role)).toEqual(["system", "user", "user"]);
    expect(asked[2]).toMatch(/> @palaver first.*> One\..*> second.*> Two\..*","apart"$/s);
  });

  test("shows a long answer in messages that fit, and nothing is lost", async () => {
    const text = Array.from({ length: 120 }, (_, index) => `${index}. A line of || text with **marks**.`).join("\n");
    const bot = await startGuild({ scripts: [text.match(/[\s\S]{1,50}/g) ?? []] });
    const { discord, channel, ada } = bot;
    discord.people.say(channel, ada, "long", { mentionBot: true });
    await discord.until(() => botMessages(discord, channel).length >= 2);
    const texts = await finished(bot, channel, 2);
    for (const one of texts) expect(Array.from(one).length).toBeLessThanOrEqual(2_000);
    expect(texts.join("\n")).toBe(toDiscordMarkdown(text));
  });

  test("shows the head of an endless answer in five messages, and the whole as a file", async () => {
    const text = Array.from({ length: 400 }, (_, index) => `${index}. A line of text with **marks** in it.`).join("\n");
    const simulator = { limits: { messages: { kind: "fixed" as const, limit: 50, windowMs: 5_000 } } };
    const bot = await startGuild({ scripts: [text.match(/[\s\S]{1,500}/g) ?? []], simulator });
    const { discord, channel, ada } = bot;
    discord.people.say(channel, ada, "endless", { mentionBot: true });
    await finished(bot, channel, 5);
    const messages = botMessages(discord, channel);
    // The file follows the line that says so.
    expect(messages).toHaveLength(5 + 2);
    const [file] = messages.flatMap((message) => shown(message).attachments);
    expect(file?.name).toBe("answer.md");
    expect(new TextDecoder().decode(file?.bytes)).toContain("399. A line of text");
  });

  test("stops when the one who asked presses Stop", async () => {
    const gate = Promise.withResolvers<void>();
    const bot = await startGuild({ scripts: [["Once upon a time", gate.promise, " never"]] });
    const { discord, channel, ada } = bot;
    discord.people.say(channel, ada, "tell me", { mentionBot: true });
    await discord.until(() => botTexts(discord, channel)[0]?.startsWith("Once upon") === true);
    const [message] = botMessages(discord, channel);
    if (message !== undefined) discord.people.press(message, ada, "Stop");
    const [text] = await finished(bot, channel);
    expect(text).toContain("Once upon a time");
    expect(text).not.toContain("never");
    gate.resolve();
  });

  test("ends with what people have read where AutoMod does not take the rest, and says so", async () => {
    const gate = Promise.withResolvers<void>();
    const bot = await startGuild({ scripts: [["Once upon a time", gate.promise, " they swore"]] });
    const { discord, channel, ada } = bot;
    discord.people.say(channel, ada, "tell me", { mentionBot: true });
    await discord.until(() => botTexts(discord, channel)[0]?.startsWith("Once upon") === true);
    discord.faults.failNext(EDIT, { status: 400, code: 200000 });
    gate.resolve();
    const [text] = await finished(bot, channel);
    expect(text).toMatch(/^Once upon a time\n\n_A filter of this place blocked .*in other words/);
  });

  test("offers Stop before there is a word, in the message that becomes the answer", async () => {
    const hold = Promise.withResolvers<void>();
    const bot = await startGuild({ scripts: [[hold.promise, "Hello."], [Promise.withResolvers<void>().promise]] });
    const { discord, channel, ada } = bot;
    discord.people.say(channel, ada, "hi", { mentionBot: true });
    await discord.until(() => /waiting for the model/i.test(botTexts(discord, channel)[0] ?? ""));
    hold.resolve();
    expect(await finished(bot, channel)).toEqual(["Hello."]);
    discord.people.say(channel, ada, "and now?", { mentionBot: true });
    await discord.until(() => /waiting for the model/i.test(botTexts(discord, channel)[1] ?? ""));
    const [, waiting] = botMessages(discord, channel);
    if (waiting !== undefined) discord.people.press(waiting, ada, "Stop");
    expect(await finished(bot, channel, 2)).toEqual(["Hello.", expect.stringContaining("stopped this answer")]);
  });

  test("lets a tool from outside do what the one who asked allows, in the same message", async () => {
    const folder = await makeDataDir();
    const { servers, scripts, results, close } = await startReferenceServers(folder.path);
    onTestFinished(async () => {
      await close();
      await folder.remove();
    });
    const outsideTools = () => servers.toolsOf({ platform: "discord", channelId: "" });
    const bot = await startGuild({ scripts, outsideTools });
    const { discord, channel, ada, requests } = bot;
    discord.people.say(channel, ada, "Ada likes tea", { mentionBot: true });
    const [card] = await finished(bot, channel);
    expect(card).toContain("memory__create_entities");
    expect(card).toContain('"likes tea"');
    const [message] = botMessages(discord, channel);
    if (message !== undefined) discord.people.press(message, ada, "Approve once");
    await discord.until(() => botTexts(discord, channel)[0]?.includes("Noted.") === true);
    await bot.idle();
    const [answer] = botTexts(discord, channel);
    expect(answer).toMatch(/^-# Used 4 tools, [\d.]+ s\nLet me note that\.\n\n_`ada` allowed that once\._\n\nNoted\.$/);
    const told = requests.at(-1)?.messages.slice(-3) ?? [];
    expect(told.map(({ content }) => content)).toEqual(results.map((text) => expect.stringContaining(text)));
  });

  test("begins again when the question is edited, and takes its answer back when it is deleted", async () => {
    const gate = Promise.withResolvers<void>();
    const scripts = [
      ["Old", gate.promise],
      ["New answer", gate.promise],
    ];
    const bot = await startGuild({ scripts });
    const { discord, channel, ada } = bot;
    const asked = discord.people.say(channel, ada, "old", { mentionBot: true });
    await discord.until(() => botTexts(discord, channel)[0] === "Old");
    discord.people.edit(asked, `<@${discord.bot.id}> new`);
    await discord.until(() => botTexts(discord, channel)[0] === "New answer");
    discord.people.delete(asked);
    await discord.until(() => botMessages(discord, channel).length === 0);
    gate.resolve();
  });

  test("answers five questions at once in one channel without meeting a limit, each with its own words", async () => {
    const bot = await startGuild({ scripts: [WORDS], simulator: { latencyMs: 20 } });
    const { discord, channel, guild } = bot;
    for (let count = 0; count < 5; count++) {
      discord.people.say(channel, discord.addUser(`person-${count}`, guild), "tell me", { mentionBot: true });
    }
    expect(await finished(bot, channel, 5)).toEqual(Array.from({ length: 5 }, () => WORDS.join("").trim()));
    expect(discord.requests.filter(({ status }) => status === 429)).toEqual([]);
  });

  test("opens a thread for a question beside an answer, and answers it there", async () => {
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

  test("goes on in a thread without a mention, until somebody else is mentioned", async () => {
    const bot = await startGuild({ scripts: [["One."], ["Two."]] });
    const { discord, channel, ada, bob, requests } = bot;
    const thread = discord.people.openThread(channel, ada, "thread");
    discord.people.say(thread, bob, "not for the bot");
    discord.people.say(thread, ada, "first", { mentionBot: true });
    expect(await finished(bot, thread)).toEqual(["One."]);
    discord.people.say(thread, ada, "second");
    expect(await finished(bot, thread, 2)).toEqual(["One.", "Two."]);
    discord.people.say(thread, ada, `<@${bob.id}> what do you think?`);
    discord.people.say(thread, bob, "not much");
    discord.people.say(channel, ada, "elsewhere", { mentionBot: true });
    await finished(bot, channel);
    expect(requests).toHaveLength(3);
  });

  test("answers /ask and other commands, each once", async () => {
    const bot = await startGuild({ scripts: [WORDS] });
    const { discord, channel, ada } = bot;
    await discord.until(() => discord.commands().length > 0);
    discord.people.command(channel, ada, "ask", { prompt: "tell me" });
    expect(await finished(bot, channel)).toEqual([WORDS.join("").trim()]);
    discord.people.command(channel, ada, "help");
    await discord.until(() => botTexts(discord, channel)[1]?.includes("I am Palaver"));
    expect(botMessages(discord, channel)[1]?.ephemeralFor).toBe(ada.id);
  });

  test("gives each /ask that waits in a thread an answer of its own, and every other message too", async () => {
    const gate = Promise.withResolvers<void>();
    const bot = await startGuild({ scripts: [[gate.promise, "One."], ["Two."], ["Three."], ["Four."]] });
    const { discord, channel, ada } = bot;
    await discord.until(() => discord.commands().length > 0);
    const thread = discord.people.openThread(channel, ada, "talk");
    discord.people.say(thread, ada, "first", { mentionBot: true });
    await discord.until(() => bot.requests.length === 1);
    for (const prompt of ["second", "third"]) discord.people.command(thread, ada, "ask", { prompt });
    discord.people.say(thread, ada, "fourth", { mentionBot: true });
    // The first one counts until it is answered.
    await discord.until(() => bot.waiting() >= 4);
    gate.resolve();
    await bot.idle();
    expect(botTexts(discord, thread).toSorted()).toEqual(["Four.", "One.", "Three.", "Two."]);
  });

  test("writes a private answer again, and shows an earlier one, long after its command may be answered", async () => {
    const bot = await startGuild({ scripts: [["One."], ["Two."]] });
    const { discord, channel, ada } = bot;
    await discord.until(() => discord.commands().length > 0);
    discord.people.command(channel, ada, "ask", { prompt: "psst", private: true });
    expect(await finished(bot, channel)).toEqual(["One."]);
    discord.clock.advance(30 * 60_000);
    const answer = () => botMessages(discord, channel)[0] as Message;
    discord.people.press(answer(), ada, "Regenerate");
    await discord.until(() => botTexts(discord, channel)[0] === "Two.");
    await bot.idle();
    discord.clock.advance(30 * 60_000);
    discord.people.press(answer(), ada, "‹ 2/2");
    await discord.until(() => botTexts(discord, channel)[0]?.startsWith("One.") === true);
    await bot.idle();
    expect(botMessages(discord, channel).map(({ ephemeralFor }) => ephemeralFor)).toEqual([ada.id]);
  });

  test.each(["a channel", "a thread", "a direct conversation"])(
    "keeps a private question in %s out of later answers to others",
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

  test.skipIf(isOnRedis)(
    "ends an answer that a shutdown cuts in plain words, and answers later questions once after the start",
    async () => {
      const [more, never] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const first = await startGuild({ scripts: [["Half of", more.promise, " it", never.promise]] });
      const { discord, channel, ada, bob, database } = first;
      discord.people.say(channel, ada, "tell me", { mentionBot: true });
      await discord.until(() => botTexts(discord, channel)[0] === "Half of");
      more.resolve();
      // An edit: by then the bot knows that its post was carried out.
      await discord.until(() => botTexts(discord, channel)[0] === "Half of it");
      await first.stop(0);
      discord.people.say(channel, bob, "me too", { mentionBot: true });
      const second = await startBot({ discord, database, scripts: [["The whole."]] });
      await finished(second, channel, 2);
      const [cut, whole, ...rest] = botTexts(discord, channel);
      expect(cut).toMatch(/^Half of it\n\n_The bot was shut down.*_$/);
      expect([whole, ...rest]).toEqual(["The whole."]);
    },
  );

  test("answers each question once under every injected failure", async () => {
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

  test.skipIf(isOnRedis)("two with stores of their own write one answer together, and it is whole", async () => {
    const gate = Promise.withResolvers<void>();
    const scripts = [["Half", gate.promise, " and half."]];
    // They do not know of each other, so an edit of one may come during one of the other.
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

  test("two bots at once on one shard answer each message once", async () => {
    const database = new DatabaseSync(":memory:");
    const bot = await startGuild({ database, scripts: [["Hello."]] });
    const { discord, channel, ada } = bot;
    await startBot({ discord, database, scripts: [["Hello."]] });
    discord.people.say(channel, ada, "hi", { mentionBot: true });
    expect(await finished(bot, channel)).toEqual(["Hello."]);
  });
});
