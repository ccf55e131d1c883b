import { DatabaseSync } from "node:sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { HOME_ACTIONS } from "../../../adapters/slack/home-view.ts";
import { createEngine } from "../../../src/engine.ts";
import { createMetrics } from "../../../src/metrics.ts";
import { createPacers } from "../../../src/pacers.ts";
import { createScheduler } from "../../../src/pacing/scheduler.ts";
import { createStores } from "../../../src/store/keyv.ts";
import { defineTool, type Tool } from "../../../src/tools/tool.ts";
import type { TransportName } from "../../simulators/slack/bolt-app.ts";
import type { Dialect } from "../../simulators/slack/dialect.ts";
import { type Slack, startSlack } from "../../simulators/slack/slack.ts";
import type { Channel, Message } from "../../simulators/slack/world.ts";
import { watchIdle } from "../../support/engine.ts";
import { fakeGateway, type Step } from "../../support/fake-gateway.ts";
import { silent } from "../../support/log.ts";
import { startAdapter, TRANSPORTS } from "./stage.ts";

interface BotOptions {
  slack?: Slack;
  database?: DatabaseSync;
  transport?: TransportName;
  scripts: Step[][];
  tools?: Tool[];
}

/** The whole bot on Slack, with a scripted model. */
async function startBot({
  database = new DatabaseSync(":memory:"),
  transport,
  scripts,
  tools = [],
  ...options
}: BotOptions) {
  const slack = options.slack ?? (await startSlack());
  const ada = slack.user({ name: "Ada" });
  const bob = slack.user({ name: "Bob" });
  const general = slack.channel({ name: "general", members: [ada, bob] });
  const { gateway, requests } = fakeGateway(...scripts);
  const scheduler = createScheduler({ pacerFor: createPacers(), now: () => performance.now() / 1_000 });
  const stores = createStores({ redisUrl: undefined, database, log: silent });
  const metrics = createMetrics();
  const engine = createEngine({
    botName: "Palaver",
    model: "fake",
    imageModel: undefined,
    systemPrompt: "Be kind.",
    limits: {
      historyTtlMs: 86_400_000,
      historyMaxMessages: 60,
      historyMaxTokens: 16_000,
      maxConcurrentTurns: 16,
      maxReferences: 8,
    },
    database,
    stores,
    gateway: { ...gateway, listModels: async () => ["fake", "another"] },
    toTools: () => tools,
    references: { prepare: async () => ({ ok: true, parts: [] }) },
    scheduler,
    adapterOf: () => started.adapter,
    pseudonym: (_, userId) => userId,
    metrics,
    log: silent,
    retryMs: [1, 4],
  });
  const idle = watchIdle(engine.queue, engine.worker);
  const started = await startAdapter(slack, {
    ...(transport && { transport }),
    accept: engine.accept,
    commands: engine.commands,
    readAbout: engine.readAbout,
  });
  onTestFinished(async () => {
    await engine.queue.close(0);
    scheduler.close();
  });
  /** What the bot shows in a thread when it has said so much there and has finished. */
  async function finished(channel: Channel, thread: Message, count = 1): Promise<string[]> {
    await slack.until(() => slack.texts(channel, thread).length >= count, `${count} answers`);
    await slack.acknowledged();
    await idle();
    return slack.texts(channel, thread);
  }
  const { records } = engine;
  return { slack, ada, bob, general, requests, records, metrics, idle, finished, ...started };
}

const WORDS = Array.from({ length: 40 }, (_, index) => `word ${index} `);

const WAYS = TRANSPORTS.flatMap(
  (transport): Array<[TransportName, Dialect]> => [
    [transport, "usual"],
    [transport, "spare"],
  ],
);

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

  test.each(["edit_window_closed", "some_error_of_tomorrow"])(
    "goes on behind a message that takes no more changes, and ends there: %s",
    async (word) => {
      const [shown, sealed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const { slack, ada, general, finished } = await start({
        scripts: [["One, two,", shown.promise, " three,", sealed.promise, " four."]],
      });
      slack.setStreaming("unknown_method");
      const asked = ada.mention(general, "count");
      await slack.until(() => slack.texts(general, asked)[0] === "One, two,", "the first words");
      slack.setSealed(word);
      shown.resolve();
      await slack.until(() => slack.requests.some(({ error }) => error === word), "a refusal");
      sealed.resolve();
      expect(await finished(general, asked, 2)).toEqual(["One, two,", "three, four."]);
      const [, end] = slack.answers(general, asked);
      expect(JSON.stringify(end?.content.blocks)).toContain("feedback_buttons");
    },
  );

  test("says that it has ended where only that is missing, and goes on where it was cut by Slack itself", async () => {
    const [shown, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { slack, ada, general, finished } = await start({
      scripts: [
        ["One.", shown.promise],
        ["Two,", ended.promise, " three."],
      ],
    });
    slack.setStreaming("unknown_method");
    const first = ada.mention(general, "count");
    await slack.until(() => slack.texts(general, first)[0] === "One.", "the words");
    slack.setSealed("edit_window_closed");
    shown.resolve();
    expect(await finished(general, first, 2)).toEqual(["One.", expect.stringMatching(/whole answer/)]);
    slack.setStreaming("on");
    slack.advance(25 * 3_600_000);
    const second = ada.mention(general, "count on");
    await slack.until(() => slack.texts(general, second)[0] === "Two,", "the stream");
    slack.advance(6 * 60_000);
    ended.resolve();
    expect(await finished(general, second, 2)).toEqual(["Two,", "three."]);
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

  test("an edit that mentions it in a thread where it was nobody's business is answered, once", async () => {
    const { slack, ada, bob, general, requests, finished, heard, idle } = await start({ scripts: [["Soup."]] });
    const root = ada.say(general, "Soup or salad?");
    const undecided = bob.say(general, "no idea", { thread: root });
    await heard();
    await idle();
    bob.edit(undecided, `<@${slack.workspace.bot.id}> any idea?`);
    expect(await finished(general, root)).toEqual(["Soup."]);
    bob.edit(undecided, `<@${slack.workspace.bot.id}> any good idea?`);
    await heard();
    await idle();
    expect(requests).toHaveLength(1);
  });

  test("knows what people said in the thread before it was asked", async () => {
    const { ada, bob, general, requests, finished, heard } = await start({ scripts: [["Soup."]] });
    const root = ada.say(general, "Soup or salad?");
    bob.say(general, "I like soup.", { thread: root });
    await heard();
    ada.mention(general, "decide", { thread: root });
    expect(await finished(general, root)).toEqual(["Soup."]);
    const shown = JSON.stringify(requests[0]?.messages);
    expect(shown).toMatch(/Soup or salad\?.*I like soup\..*decide/s);
  });

  test("answers one question once, however often Slack tells of it", async () => {
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
  test("says in the direct conversation, and so that it stays, what came of a button of the home page", async () => {
    const { slack, ada, finished } = await startBot({ scripts: [["Hello."]] });
    await finished(ada.direct(), ada.dm("hi"));
    ada.openHome();
    const view = await slack.until(() => slack.home(ada), "the home");
    await ada.pressInView(view, { type: "button", action_id: HOME_ACTIONS.forget });
    const isSaid = () => slack.texts(ada.direct()).find((text) => text.startsWith("Erased"));
    expect(await slack.until(isSaid, "the answer")).toBeDefined();
    expect(slack.ephemerals(ada.direct())).toEqual([]);
  });

  test("draws the home again when what was chosen or asked there is done", async () => {
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
    const { slack, ada, general } = first;
    const asked = [ada.mention(general, "one"), ada.mention(general, "two")];
    slack.disconnect("refresh_requested", { isOne: true });
    asked.push(ada.mention(general, "three"));
    for (const question of asked) {
      await slack.until(() => slack.texts(general, question).length > 0, "the answer");
    }
    await slack.acknowledged();
    expect(asked.map((question) => slack.texts(general, question).length)).toEqual([1, 1, 1]);
  });
});

type Bot = Awaited<ReturnType<typeof startBot>>;
type Gate = PromiseWithResolvers<void>;

const CALL: Step = {
  tool_calls: [{ index: 0, id: "c", type: "function", function: { name: "look", arguments: "{}" } }],
};

/** A tool that looks until the promise is settled. */
function look(until: Promise<unknown>): Tool {
  return defineTool({
    name: "look",
    description: "Looks.",
    schema: z.object({}),
    timeoutMs: 60_000,
    run: async () => String(await until),
    describeCall: () => "looking out of the window",
  });
}

describe("tools of the bot on Slack", () => {
  /** Lets the model go on once people have read these words. */
  async function read({ slack, general }: Bot, asked: Message, words: string, gate: Gate): Promise<void> {
    await slack.until(() => slack.texts(general, asked)[0] === words, words);
    gate.resolve();
  }

  const statuses = ({ slack, general }: Bot, asked: Message) =>
    slack.statuses(general, asked).map(({ status }) => status);

  test("are shown as cards beside the text while they run, and when they are done", async () => {
    const [one, two] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const gate = Promise.withResolvers<string>();
    const scripts = [["Let me", one.promise, " look.", two.promise, CALL], ["It rains."]];
    const bot = await startBot({ scripts, tools: [look(gate.promise)] });
    const { slack, ada, general } = bot;
    const asked = ada.mention(general, "weather?");
    // The second words stand only where the bot knows of the message with the first.
    await read(bot, asked, "Let me", one);
    await read(bot, asked, "Let me look.", two);
    const card = () => slack.answers(general, asked)[0]?.stream?.tasks.get("1.1.0");
    await slack.until(() => card()?.["status"] === "in_progress", "the card");
    expect(card()).toMatchObject({ title: "Looking out of the window" });
    gate.resolve("rain");
    expect(await bot.finished(general, asked)).toEqual(["Let me look.\n\nIt rains."]);
    expect(card()?.["status"]).toBe("complete");
    expect(statuses(bot, asked)).not.toContain("is looking out of the window…");
    expect(slack.requests.map(({ method }) => method)).not.toContain("chat.update");
  });

  test("are the status before there is text, and come as cards with the first of it", async () => {
    const [gate, more] = [Promise.withResolvers<string>(), Promise.withResolvers<void>()];
    const bot = await startBot({ scripts: [[CALL], ["It rains.", more.promise]], tools: [look(gate.promise)] });
    const { slack, ada, general } = bot;
    const asked = ada.mention(general, "weather?");
    await slack.until(() => slack.status(general, asked) === "is looking out of the window…", "the status");
    expect(slack.answers(general, asked)).toEqual([]);
    gate.reject(new Error("It is dark."));
    const stream = await slack.until(() => slack.answers(general, asked)[0]?.stream, "the stream");
    expect([...stream.tasks.values()]).toMatchObject([{ title: "Looking out of the window", status: "error" }]);
    more.resolve();
    expect(await bot.finished(general, asked)).toEqual(["It rains."]);
  });

  test("that are cut short by a failure of the model leave nothing spinning", async () => {
    const words = Promise.withResolvers<void>();
    const bot = await startBot({
      scripts: [
        ["Let me look.", words.promise, CALL],
        ["It", new Error("cut")],
      ],
      tools: [look(Promise.resolve("rain"))],
    });
    const asked = bot.ada.mention(bot.general, "weather?");
    await read(bot, asked, "Let me look.", words);
    const [text] = await bot.finished(bot.general, asked);
    expect(text).toMatch(/^Let me look\.\n\nIt\n\n_Failed/);
    const tasks = bot.slack.answers(bot.general, asked)[0]?.stream?.tasks;
    expect([...(tasks?.values() ?? [])]).toMatchObject([{ status: "complete" }]);
  });

  test("leave no card spinning when a person stops the answer, or edits the question", async () => {
    const never = Promise.withResolvers<string>();
    const [one, two] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const scripts = [["Let me look.", one.promise, CALL], ["Nothing to look at."], ["Let me see.", two.promise, CALL]];
    const bot = await startBot({ scripts, tools: [look(never.promise)] });
    const { slack, ada, general } = bot;
    const isLooking = (asked: Message) => () =>
      slack
        .answers(general, asked)[0]
        ?.stream?.tasks.values()
        .some(({ status }) => status === "in_progress");
    const asked = ada.mention(general, "weather?");
    await read(bot, asked, "Let me look.", one);
    await slack.until(isLooking(asked), "the card");
    ada.edit(asked, `<@${slack.workspace.bot.id}> never mind`);
    await slack.until(() => slack.texts(general, asked)[0] === "Nothing to look at.", "the other answer");
    const other = ada.mention(general, "and there?");
    await read(bot, other, "Let me see.", two);
    await slack.until(isLooking(other), "the other card");
    ada.stop(other);
    await slack.until(() => slack.texts(general, other)[0]?.includes("Stopped"), "the end");
    await bot.idle();
    const left = [asked, other].map((one) => [...(slack.answers(general, one)[0]?.stream?.tasks ?? [])]);
    expect(left).toEqual([[], []]);
  });

  test("of five answers at once meet no limit, and leave the text as it is", async () => {
    const bot = await startBot({ scripts: [[...WORDS, CALL]], tools: [look(Promise.resolve("rain"))] });
    const { slack, ada, general } = bot;
    const asked = Array.from({ length: 5 }, (_, index) => ada.mention(general, `question ${index}`));
    const text = Array.from({ length: 8 }, () => WORDS.join("")).join("\n\n");
    for (const question of asked) {
      const [answer] = await bot.finished(general, question);
      expect(answer?.replace(/\n\n_Interrupted.*/, "")).toBe(text.trim());
    }
    expect(slack.requests.filter(({ status }) => status === 429)).toEqual([]);
  });

  test("stay the status where nothing streams", async () => {
    const [one, two] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const gate = Promise.withResolvers<string>();
    const slack = await startSlack({ streaming: "unknown_method" });
    const scripts = [["Let me", one.promise, " look.", two.promise, CALL], ["It rains."]];
    const bot = await startBot({ slack, scripts, tools: [look(gate.promise)] });
    const asked = bot.ada.mention(bot.general, "weather?");
    await read(bot, asked, "Let me", one);
    await read(bot, asked, "Let me look.", two);
    await slack.until(() => slack.status(bot.general, asked) === "is looking out of the window…", "the status");
    gate.resolve("rain");
    expect(await bot.finished(bot.general, asked)).toEqual(["Let me look.\n\nIt rains."]);
    expect(slack.status(bot.general, asked)).toBe("");
  });
});

describe("feedback on the bot's answers on Slack", () => {
  /** Answers in words of which the last come when the first were read. */
  async function answer({ slack, general, ada, finished }: Bot, end: PromiseWithResolvers<void>): Promise<Message> {
    const asked = ada.mention(general, "tell me");
    await slack.until(() => slack.texts(general, asked).length > 0, "the first words");
    end.resolve();
    expect(await finished(general, asked)).toEqual(["One, two."]);
    const [message] = slack.answers(general, asked);
    if (message === undefined) throw new Error("There is no answer.");
    return message;
  }

  test.each(TRANSPORTS)("is given with Slack's own buttons, kept and counted, over %s", async (transport) => {
    const end = Promise.withResolvers<void>();
    const bot = await startBot({ transport, scripts: [["One,", end.promise, " two."]] });
    const { slack, ada, bob, records, metrics } = bot;
    const message = await answer(bot, end);
    expect(message.content.blocks.map(({ type }) => type)).toEqual(["context_actions"]);
    for (const person of [ada, bob]) await person.judge(message, "positive_button");
    await ada.judge(message, "negative_button");
    await slack.acknowledged();
    await bot.idle();
    const presses = bot.events.filter(({ kind }) => kind === "action");
    expect(presses).toMatchObject([{ action: "good" }, { action: "good" }, { action: "bad" }]);
    const [press] = presses;
    const { feedback } = (press?.kind === "action" && (await records.load(press.turnId))) || {};
    expect(feedback).toEqual({ [ada.id]: "bad", [bob.id]: "good" });
    const { body } = await metrics.render();
    expect(body).toMatch(/feedback_total\{platform="slack",feedback="good"\} 2/);
    expect(body).toMatch(/feedback_total\{platform="slack",feedback="bad"\} 1/);
  });

  test.each(["on", "unknown_method"] as const)(
    "has plain buttons where Slack takes no others; streaming: %s",
    async (streaming) => {
      const slack = await startSlack({ streaming });
      slack.setUnknown("feedback_buttons");
      const ends = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const bot = await startBot({ slack, scripts: ends.map(({ promise }) => ["One,", promise, " two."]) });
      for (const end of ends) await bot.ada.press(await answer(bot, end), "good");
      await slack.acknowledged();
      await bot.idle();
      expect(slack.requests.filter(({ error }) => error === "invalid_blocks")).toHaveLength(1);
      expect((await bot.metrics.render()).body).toMatch(/feedback_total\{platform="slack",feedback="good"\} 2/);
    },
  );
});
