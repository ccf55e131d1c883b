import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { HOME_ACTIONS } from "../../../adapters/slack/act/home.ts";
import type { Message } from "../../../lab/slack-sim/world.ts";
import { type BotOptions, startBot, WAYS } from "./bot-stage.ts";

describe.each(WAYS)("the bot on Slack over %s, in its %s dialect", (transport, dialect) => {
  const start = (options: BotOptions) => startBot({ transport, simulator: { dialect }, ...options });

  test("Slack's status says that the model thinks, and the bot quotes the thoughts once the channel asked for them", async () => {
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

  test("the bot streams code line by line, and never rewrites a line", async () => {
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

  test("the bot answers an edit that adds a mention in someone else's thread, and every later edit", async () => {
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

  test("the model reads a pasted table and its edits", async () => {
    const { slack, ada, general, requests, finished, heard, idle } = await start({
      scripts: [["Two."], ["Three."]],
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
    ada.editShown(asked, { attachments: [toPasted("3")] });
    await heard();
    await idle();
    expect(slack.texts(general, asked)).toEqual(["Three."]);
    expect(requests[1]?.messages.at(-1)?.content).toBe(`how many?\n\n${markdown("3")}`);
  });
});

describe("the bot on Slack", () => {
  test("the bot answers a button of the home page in a direct message that stays", async () => {
    const { slack, ada, finished } = await startBot({ scripts: [["Hello."]] });
    await finished(ada.direct(), ada.dm("hi"));
    ada.openHome();
    const view = await slack.until(() => slack.home(ada), "the home");
    await ada.pressInView(view, { type: "button", action_id: HOME_ACTIONS.forget });
    const isSaid = () => slack.texts(ada.direct()).find((text) => text.startsWith("Erased"));
    expect(await slack.until(isSaid, "the answer")).toBeDefined();
    expect(slack.ephemerals(ada.direct())).toEqual([]);
  });

  test("the home page shows a choice as soon as it is stored", async () => {
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

  test("a workspace without Slack's own Stop shows a Stop button in the message that becomes the answer", async () => {
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

  test("Slack's own Stop works before the first word, when the bot has posted no message yet", async () => {
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

  test("two processes answer each message once, even while Slack refreshes their sockets", async () => {
    const database = new DatabaseSync(":memory:");
    const first = await startBot({ database, scripts: [["Hello."]] });
    await startBot({ slack: first.slack, database, scripts: [["Hello."]] });
    const { slack, ada } = first;
    // Each process counts a channel's limit for posts separately, so this asks one question per channel.
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

  test("an app without the reactions scope asks Slack for a reaction only once", async () => {
    const end = Promise.withResolvers<void>();
    const bot = await startBot({ scripts: [["One,", end.promise, " two."], ["Three."]] });
    const { slack, ada, bob, general, finished } = bot;
    slack.workspace.scopes.delete("reactions:write");
    const asked = ada.mention(general, "count");
    await slack.until(() => slack.texts(general, asked).length > 0, "the first words");
    bob.mention(general, "go on", { thread: asked });
    await slack.until(() => slack.requests.some(({ method }) => method === "reactions.add"), "the call");
    end.resolve();
    expect(await finished(general, asked, 2)).toEqual(["One, two.", "Three."]);
    expect(slack.requests.filter(({ method }) => method.startsWith("reactions."))).toHaveLength(1);
  });
});
