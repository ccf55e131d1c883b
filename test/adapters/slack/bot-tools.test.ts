import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { smallPrint } from "../../../lab/slack-sim/shown-text.ts";
import type { Message } from "../../../lab/slack-sim/world.ts";
import type { Step } from "../../../lab/support/fake-gateway.ts";
import { startReferenceServers } from "../../../lab/support/mcp-world.ts";
import { makeDataDir } from "../../../lab/support/service.ts";
import { readEditionId } from "../../../src/port/ids.ts";
import { defineTool, type Tool } from "../../../src/tools/tool.ts";
import { startBot, WORDS } from "./bot-stage.ts";
import { TRANSPORTS } from "./stage.ts";
import { personOf } from "./workspace.ts";

type Bot = Awaited<ReturnType<typeof startBot>>;
type Gate = PromiseWithResolvers<void>;

const CALL: Step = {
  tool_calls: [{ index: 0, id: "c", type: "function", function: { name: "look", arguments: "{}" } }],
};

/** A tool that runs until the promise settles. */
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
  /** Lets the model continue when people have read these words. */
  async function read({ slack, general }: Bot, asked: Message, words: string, gate: Gate): Promise<void> {
    await slack.until(() => slack.texts(general, asked)[0] === words, words);
    gate.resolve();
  }

  const statuses = ({ slack, general }: Bot, asked: Message) =>
    slack.statuses(general, asked).map(({ status }) => status);

  test("a running tool appears as a card next to the text, and its card stays when the tool is done", async () => {
    const [one, two] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const gate = Promise.withResolvers<string>();
    const scripts = [["Let me", one.promise, " look.", two.promise, CALL], ["It rains."]];
    const bot = await startBot({ scripts, tools: [look(gate.promise)] });
    const { slack, ada, general } = bot;
    const asked = ada.mention(general, "weather?");
    // The second words arrive only if the bot knows the message that contains the first ones.
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

  test("a tool that runs before the first word appears in the status, and becomes a card with the first word", async () => {
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

  test("a card shows the pages that its tool has read, and the answer ends in its stream with all its sources", async () => {
    const read = { url: "https://a.example/?b=1&c=2", title: "Rain | today" };
    const cited = { url: "https://c.example/", title: "", marks: [1] };
    const looking: Tool = { ...look(Promise.resolve("")), run: async () => ({ text: "rain", sources: [read] }) };
    const more = Promise.withResolvers<void>();
    const scripts: Step[][] = [[CALL], [{ sources: [cited] }, "It rains[1].", more.promise, " Again[1]."]];
    const bot = await startBot({ scripts, tools: [looking] });
    const { slack, ada, general } = bot;
    const asked = ada.mention(general, "weather?");
    const stream = await slack.until(() => slack.answers(general, asked)[0]?.stream, "the stream");
    const link = "[[1]](https://c.example/)";
    await slack.until(() => slack.texts(general, asked)[0] === `It rains${link}.`, "the first words");
    expect([...stream.tasks.values()]).toMatchObject([
      { status: "complete", sources: [{ type: "url", url: read.url, text: read.title }] },
    ]);
    more.resolve();
    expect(await bot.finished(general, asked)).toEqual([`It rains${link}. Again${link}.`]);
    const [message, ...others] = slack.answers(general, asked);
    expect(others).toEqual([]);
    expect(message && smallPrint(message.content)).toContain(
      "1. <https://c.example/|c.example>\n2. <https://a.example/?b=1&amp;c=2|Rain | today>",
    );
    const methods = slack.requests.map(({ method }) => method);
    expect(methods).not.toContain("chat.update");
    expect(methods).not.toContain("chat.postMessage");
  });

  test("no card looks unfinished after a person stops the answer or edits the question", async () => {
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
    await slack.until(() => slack.texts(general, other)[0]?.includes("stopped this answer"), "the end");
    await bot.idle();
    const left = [asked, other].map((one) => [...(slack.answers(general, one)[0]?.stream?.tasks ?? [])]);
    expect(left).toEqual([[], []]);
  });

  test("the cards of five answers at once hit no rate limit and change no text", async () => {
    const bot = await startBot({ isPaced: true, scripts: [[...WORDS, CALL]], tools: [look(Promise.resolve("rain"))] });
    const { slack, ada, general } = bot;
    const asked = Array.from({ length: 5 }, (_, index) => ada.mention(general, `question ${index}`));
    const text = Array.from({ length: 8 }, () => WORDS.join("")).join("\n\n");
    for (const question of asked) {
      const [answer] = await bot.finished(general, question);
      expect(answer?.replace(/\n\n_The model kept.*/, "")).toBe(text.trim());
    }
    expect(slack.requests.filter(({ status }) => status === 429)).toEqual([]);
  });

  test("a tool appears only in the status in a workspace without streams", async () => {
    const [one, two] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const gate = Promise.withResolvers<string>();
    const scripts = [["Let me", one.promise, " look.", two.promise, CALL], ["It rains."]];
    const bot = await startBot({
      simulator: { streaming: "unknown_method" },
      scripts,
      tools: [look(gate.promise)],
    });
    const { slack } = bot;
    const asked = bot.ada.mention(bot.general, "weather?");
    await read(bot, asked, "Let me", one);
    await read(bot, asked, "Let me look.", two);
    await slack.until(() => slack.status(bot.general, asked) === "is looking out of the window…", "the status");
    gate.resolve("rain");
    expect(await bot.finished(bot.general, asked)).toEqual(["Let me look.\n\nIt rains."]);
    expect(slack.status(bot.general, asked)).toBe("");
    const print = slack.answers(bot.general, asked).map(({ content }) => smallPrint(content));
    expect(print).toEqual([[expect.stringMatching(/^Used 1 tool, [\d.]+ s$/)]]);
  });
});

describe("external tools on Slack", () => {
  test("tools of three MCP servers wait for the person who asked, and the answer continues in the same message", async () => {
    const folder = await makeDataDir();
    const { servers, scripts, results, close } = await startReferenceServers(folder.path);
    onTestFinished(async () => {
      await close();
      await folder.remove();
    });
    const outsideTools = () => servers.toolsOf({ platform: "slack", channelId: "" });
    const bot = await startBot({ scripts, outsideTools });
    const { slack, ada, bob, general, requests } = bot;
    const asked = ada.mention(general, "Ada likes tea");
    const [card] = await bot.finished(general, asked);
    expect(card).toContain("memory__create_entities");
    expect(card).toContain('"likes tea"');
    const [message] = slack.answers(general, asked);
    if (message === undefined) throw new Error("There is no card.");
    await bob.press(message, "approve");
    await slack.acknowledged();
    await bot.idle();
    expect(requests).toHaveLength(1);
    await ada.press(message, "approve");
    await slack.until(() => slack.texts(general, asked)[0]?.includes("Noted."), "the answer");
    await bot.idle();
    expect(slack.texts(general, asked)[0]).toBe("Let me note that.\n\n_`Ada` allowed that once._\n\nNoted.");
    const told = requests.at(-1)?.messages.slice(-3) ?? [];
    expect(told.map(({ content }) => content)).toEqual(results.map((text) => expect.stringContaining(text)));
  });
});

describe("feedback on the bot's answers on Slack", () => {
  test.each(TRANSPORTS)("the bot stores and counts feedback from Slack's own buttons, over %s", async (transport) => {
    const end = Promise.withResolvers<void>();
    const bot = await startBot({ transport, scripts: [["One,", end.promise, " two."]] });
    const { slack, ada, bob, general, records, metrics } = bot;
    const asked = ada.mention(general, "tell me");
    await slack.until(() => slack.texts(general, asked).length > 0, "the first words");
    end.resolve();
    expect(await bot.finished(general, asked)).toEqual(["One, two."]);
    const [message] = slack.answers(general, asked);
    if (message === undefined) throw new Error("There is no answer.");
    expect(message.content.blocks.map(({ type }) => type)).toEqual(["actions", "context_actions"]);
    for (const person of [ada, bob]) await person.judge(message, "positive_button");
    await ada.judge(message, "negative_button");
    await slack.acknowledged();
    await bot.idle();
    const presses = bot.events.filter(({ kind }) => kind === "action");
    expect(presses).toMatchObject([{ action: "good" }, { action: "good" }, { action: "bad" }]);
    const [press] = presses;
    const { feedback } = (press?.kind === "action" && (await records.load(readEditionId(press.turnId).turnId))) || {};
    expect(feedback).toEqual({ [personOf(slack, ada)]: "bad", [personOf(slack, bob)]: "good" });
    const { body } = await metrics.render();
    expect(body).toMatch(/feedback_total\{platform="slack",feedback="good"\} 2/);
    expect(body).toMatch(/feedback_total\{platform="slack",feedback="bad"\} 1/);
  });
});
