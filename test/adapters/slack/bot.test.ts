import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { HOME_ACTIONS } from "../../../adapters/slack/interactions/home.ts";
import { startSlack } from "../../simulators/slack/slack.ts";
import type { Message } from "../../simulators/slack/world.ts";
import { type BotOptions, startBot, WAYS, WORDS } from "./bot-stage.ts";

describe.each(WAYS)("the bot on Slack over %s, in its %s dialect", (transport, dialect) => {
  const start = async (options: BotOptions) =>
    startBot({ transport, slack: await startSlack({ dialect }), ...options });

  test("answers a mention in its thread with the model's own words, and pings nobody", async () => {
    const { slack, ada, general, finished } = await start({ scripts: [WORDS] });
    const asked = ada.mention(general, "tell me");
    expect(await finished(general, asked)).toEqual([WORDS.join("").trim()]);
    expect(slack.texts(general)).toHaveLength(1);
    expect(slack.pings).toEqual([]);
  });

  test("shows that the model thinks, and its thoughts only where the channel asks for them", async () => {
    const thought = { reasoning: "A greeting to <@U1>.\nI greet back." };
    const hold = Promise.withResolvers<void>();
    const bot = await start({
      scripts: [
        [thought, hold.promise, "Hello."],
        [thought, "Hello."],
      ],
    });
    const { slack, ada, finished } = bot;
    const direct = ada.direct();
    const asked = ada.dm("hi");
    await slack.until(() => slack.status(direct, asked) === "is thinking…", "the status");
    expect(slack.texts(direct, asked)).toEqual([]);
    hold.resolve();
    expect(await finished(direct, asked)).toEqual(["Hello."]);
    await finished(direct, ada.dm("!model --thinking shown"));
    const [answer] = await finished(direct, ada.dm("hi"));
    expect(answer).toMatch(
      /^> \*\*Thought for \d+ s\*\*\n> A greeting to <\u200B?@U1>\.\n> I greet back\.\n\nHello\.$/,
    );
    expect(slack.pings).toEqual([]);
  });

  test("streams code while it grows, and nothing of it is written anew", async () => {
    const lines = Array.from({ length: 6 }, () => Promise.withResolvers<void>());
    const script = lines.flatMap(({ promise }, index) => [`const a${index} = ${index};\n`, promise]);
    const { slack, ada, general, finished } = await start({
      scripts: [["Look:\n\n```ts\n", ...script, "```\n\nDone."]],
    });
    const asked = ada.mention(general, "code, please");
    for (const [index, { resolve }] of lines.entries()) {
      await slack.until(
        () => slack.answers(general, asked).at(0)?.states.at(-1)?.shown.includes(`a${index} =`),
        "a line",
      );
      resolve();
    }
    const code = lines.map((_, index) => `const a${index} = ${index};`).join("\n");
    expect(await finished(general, asked)).toEqual([`Look:\n\n\`\`\`ts\n${code}\n\`\`\`\n\nDone.`]);
    const methods = slack.requests.map(({ method }) => method);
    expect(methods.filter((method) => method === "chat.appendStream").length).toBeGreaterThan(3);
    expect(methods).not.toContain("chat.update");
  });

  test("tells the model which person said which message, by display name", async () => {
    const { slack, ada, requests, finished } = await start({ scripts: [["One."], ["Two."]] });
    const tanaka = slack.user({ name: "田中" });
    const general = slack.channel({ name: "lunch", members: [ada, tanaka] });
    const root = ada.mention(general, `お昼は <@${tanaka.id}>？`);
    await finished(general, root);
    tanaka.say(general, "うどん", { thread: root });
    await finished(general, root, 2);
    expect(requests[0]?.messages.slice(1)).toMatchObject([{ content: "お昼は @田中？", name: "Ada" }]);
    expect(requests[1]?.messages.slice(1)).toMatchObject([
      { content: "Ada: お昼は @田中？", name: "Ada" },
      { content: "One." },
      { content: "田中: うどん", name: expect.stringMatching(/^user-/) },
    ]);
  });

  test("goes on in a thread without being mentioned, until somebody else is addressed", async () => {
    const { ada, bob, general, requests, finished, heard, idle } = await start({
      scripts: [["One."], ["Two."], ["Three."]],
    });
    const root = ada.mention(general, "first");
    await finished(general, root);
    bob.say(general, "second", { thread: root });
    expect(await finished(general, root, 2)).toEqual(["One.", "Two."]);
    ada.say(general, `<@${bob.id}> what do you say?`, { thread: root });
    await heard();
    bob.say(general, "nothing", { thread: root });
    await heard();
    await idle();
    expect(requests).toHaveLength(2);
    ada.mention(general, "third", { thread: root });
    expect(await finished(general, root, 3)).toEqual(["One.", "Two.", "Three."]);
  });

  test("an edit begins the answer anew in its place, and a deletion takes it away", async () => {
    const gate = Promise.withResolvers<void>();
    const bot = await start({
      scripts: [
        ["Old", gate.promise],
        ["New answer", gate.promise],
      ],
    });
    const { slack, ada, general } = bot;
    const asked = ada.mention(general, "old");
    await slack.until(() => slack.texts(general, asked)[0]?.startsWith("Old"), "the first words");
    ada.edit(asked, `<@${slack.workspace.bot.id}> new`);
    await slack.until(() => slack.texts(general, asked)[0]?.startsWith("New answer"), "the new words");
    ada.delete(asked);
    await slack.until(() => slack.answers(general).length === 0, "nothing");
    gate.resolve();
    await bot.idle();
  });

  test("an edit that adds a mention in a foreign thread is answered, and the next edit again", async () => {
    const { slack, ada, bob, general, requests, finished, heard, idle } = await start({
      scripts: [["Soup."], ["Salad."]],
    });
    const root = ada.say(general, "Soup or salad?");
    const undecided = bob.say(general, "no idea", { thread: root });
    await heard();
    await idle();
    bob.edit(undecided, `<@${slack.workspace.bot.id}> any idea?`);
    expect(await finished(general, root)).toEqual(["Soup."]);
    bob.edit(undecided, `<@${slack.workspace.bot.id}> any good idea?`);
    await heard();
    await idle();
    expect(slack.texts(general, root)).toEqual(["Salad."]);
    expect(requests).toHaveLength(2);
  });

  test("takes a mention inside code for no mention, in either event and in an edit", async () => {
    const { slack, ada, bob, general, requests, finished, heard, idle } = await start({ scripts: [["Now."]] });
    const mention = `<@${slack.workspace.bot.id}>`;
    ada.say(general, `write \`${mention} help\` to ask`);
    const block = ada.say(general, `\`\`\`\n${mention} help\n\`\`\``);
    const plain = bob.say(general, "how do I ask?");
    bob.edit(plain, `is it \`${mention}\`?`);
    await heard();
    await idle();
    expect(requests).toEqual([]);
    ada.edit(block, `${mention} help`);
    expect(await finished(general, block)).toEqual(["Now."]);
    expect(slack.answers(general)).toHaveLength(1);
  });

  test("shows the model a pasted table, even if it is the whole message, and answers its edit", async () => {
    const { slack, ada, general, requests, finished, heard, idle } = await start({
      scripts: [["Two."], ["Seen."], ["Three."]],
    });
    const cell = (text: string) => ({ type: "raw_text", text });
    const toTable = (count: string) => ({
      type: "table",
      rows: [
        [cell("Fruit"), cell("Count")],
        [cell("apple"), cell(count)],
      ],
    });
    const toPasted = (count: string) => ({ id: 1, fallback: "[no preview available]", blocks: [toTable(count)] });
    const asked = ada.show(general, {
      text: `<@${slack.workspace.bot.id}> how many?`,
      attachments: [toPasted("2")],
    });
    expect(await finished(general, asked)).toEqual(["Two."]);
    const markdown = (count: string) => `| Fruit | Count |\n| --- | --- |\n| apple | ${count} |`;
    expect(requests[0]?.messages.at(-1)?.content).toBe(`how many?\n\n${markdown("2")}`);
    const direct = ada.direct();
    const alone = ada.show(direct, { blocks: [toTable("2")] });
    expect(await finished(direct, alone)).toEqual(["Seen."]);
    expect(requests[1]?.messages.at(-1)?.content).toBe(markdown("2"));
    ada.editShown(asked, { attachments: [toPasted("3")] });
    await heard();
    await idle();
    expect(slack.texts(general, asked)).toEqual(["Three."]);
    expect(requests[2]?.messages.at(-1)?.content).toBe(`how many?\n\n${markdown("3")}`);
  });

  test("knows the messages of the thread before it was asked", async () => {
    const { ada, bob, general, requests, finished, heard } = await start({ scripts: [["Soup."]] });
    const root = ada.say(general, "Soup or salad?");
    bob.say(general, "I like soup.", { thread: root });
    await heard();
    ada.mention(general, "decide", { thread: root });
    expect(await finished(general, root)).toEqual(["Soup."]);
    const shown = JSON.stringify(requests[0]?.messages);
    expect(shown).toMatch(/Soup or salad\?.*I like soup\..*decide/s);
  });

  test("answers a question once that Slack delivers several times", async () => {
    const { slack, ada, general, requests, finished, idle } = await start({ scripts: [["Once."]] });
    const asked = ada.mention(general, "hello");
    await finished(general, asked);
    await slack.redeliver(asked);
    await slack.redeliver(asked);
    await idle();
    expect(slack.texts(general, asked)).toEqual(["Once."]);
    expect(requests).toHaveLength(1);
  });

  test("takes a word with an exclamation mark in a thread as a command, which Slack has none of there", async () => {
    const { slack, ada, general, requests, finished } = await start({ scripts: [["Hello."]] });
    const root = ada.dm("hi");
    await finished(ada.direct(), root);
    ada.dm("!help", { thread: root });
    const [, answer] = await finished(ada.direct(), root, 2);
    expect(answer).toContain("I am Palaver");
    ada.mention(general, "!help", { thread: ada.say(general, "hm") });
    const isSeen = () => slack.ephemerals(general, ada.id)[0]?.shown;
    expect(await slack.until(isSeen, "the help")).toContain("I am Palaver");
    expect(requests).toHaveLength(1);
  });
});

describe("the bot on Slack", () => {
  test("answers a button of the home page in the direct conversation, in a message that stays", async () => {
    const { slack, ada, finished } = await startBot({ scripts: [["Hello."]] });
    await finished(ada.direct(), ada.dm("hi"));
    ada.openHome();
    const view = await slack.until(() => slack.home(ada), "the home");
    await ada.pressInView(view, { type: "button", action_id: HOME_ACTIONS.forget });
    const isSaid = () => slack.texts(ada.direct()).find((text) => text.startsWith("Erased"));
    expect(await slack.until(isSaid, "the answer")).toBeDefined();
    expect(slack.ephemerals(ada.direct())).toEqual([]);
  });

  test("draws the home again when a choice made there is done", async () => {
    const { slack, ada, finished } = await startBot({ scripts: [["Hello."]] });
    await finished(ada.direct(), ada.dm("hi"));
    ada.openHome();
    const view = await slack.until(() => slack.home(ada), "the home");
    const says = (words: string) => () => JSON.stringify(slack.home(ada)?.body).includes(words);
    expect(says("`fake` answers you there")()).toBe(true);
    const selected_option = { value: "another" };
    await ada.pressInView(view, { type: "static_select", action_id: HOME_ACTIONS.model, selected_option });
    expect(await slack.until(says("`another` answers you there"), "the chosen model")).toBe(true);
    await ada.pressInView(view, { type: "button", action_id: HOME_ACTIONS.forget });
    expect(await slack.until(says("0 messages in 0 conversations"), "what is kept")).toBe(true);
  });

  test("offers Stop before there is a word where Slack has none of its own, in the one message that becomes the answer", async () => {
    const hold = Promise.withResolvers<void>();
    const bot = await startBot({ scripts: [[hold.promise, "Hello."], [Promise.withResolvers<void>().promise]] });
    const { slack, ada, general, finished } = bot;
    slack.failNext("agents.sessions.setStatus", { error: "not_agent_app" });
    const seesWait = (asked: Message) =>
      slack.until(() => slack.texts(general, asked)[0]?.match(/waiting for the model/i), "the wait");
    const asked = ada.mention(general, "hi");
    await seesWait(asked);
    const [shown] = slack.answers(general, asked);
    hold.resolve();
    await slack.until(() => slack.texts(general, asked)[0] === "Hello.", "the answer");
    expect(slack.answers(general, asked).map(({ ts }) => ts)).toEqual([shown?.ts]);
    expect(slack.requests.filter(({ method }) => /post|startStream/.test(method))).toHaveLength(1);
    const other = ada.mention(general, "and now?");
    await seesWait(other);
    const [waiting] = slack.answers(general, other);
    if (waiting !== undefined) await ada.press(waiting, "stop");
    await slack.until(() => slack.texts(general, other)[0]?.includes("stopped this answer"), "the end");
    expect(await finished(general, other)).toEqual(["_`Ada` stopped this answer._"]);
  });

  test("shows Slack's own Stop before there is a word, and no message for it", async () => {
    const hold = Promise.withResolvers<void>();
    const { slack, ada, general, finished } = await startBot({ scripts: [[hold.promise, "never"]] });
    const asked = ada.mention(general, "hi");
    await slack.until(() => slack.assistant.session(general, asked.ts) === "processing", "Slack's Stop");
    expect(slack.texts(general, asked)).toEqual([]);
    ada.stop(asked);
    await slack.until(() => slack.texts(general, asked)[0]?.includes("stopped this answer"), "the end");
    expect(await finished(general, asked)).toEqual(["_`Ada` stopped this answer._"]);
    hold.resolve();
  });

  test("answers five questions at once, each with its own words and without meeting a limit", async () => {
    const bot = await startBot({ scripts: [WORDS] });
    const asked = Array.from({ length: 5 }, (_, index) => bot.ada.mention(bot.general, `question ${index}`));
    for (const question of asked) expect(await bot.finished(bot.general, question)).toEqual([WORDS.join("").trim()]);
    expect(bot.requests).toHaveLength(5);
  });

  test("two processes at once answer each message once, also while their sockets are refreshed", async () => {
    const database = new DatabaseSync(":memory:");
    const first = await startBot({ database, scripts: [["Hello."]] });
    await startBot({ slack: first.slack, database, scripts: [["Hello."]] });
    const { slack, ada } = first;
    // Each process keeps to a channel's limit on posts by itself: one question in each channel.
    const ask = (text: string) => {
      const channel = slack.channel({ name: text, members: [ada] });
      return { channel, question: ada.mention(channel, text) };
    };
    const asked = [ask("one"), ask("two")];
    slack.disconnect("refresh_requested", { isOne: true });
    asked.push(ask("three"));
    const answers = () => asked.map(({ channel, question }) => slack.texts(channel, question).length);
    await slack.until(() => answers().every((count) => count > 0), "the answers");
    await slack.acknowledged();
    expect(answers()).toEqual([1, 1, 1]);
  });
});
