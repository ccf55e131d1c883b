import { describe, expect, test } from "vitest";
import type { Actor } from "../../src/port/catalogue.ts";
import { startStage } from "../adapters/slack/stage.ts";
import { alone } from "../search/rights.ts";

const signal = new AbortController().signal;

/** Ada asks in #general. Bob writes. */
async function start(options: Parameters<typeof startStage>[0] = {}) {
  const stage = await startStage(options);
  const { slack, general, ada } = stage;
  const adapter = stage.adapter as Required<typeof stage.adapter>;
  async function asker(): Promise<Actor & { at: number }> {
    const { ts } = ada.mention(general, "!catchup");
    const found = () => stage.events.find((event) => event.kind === "message" && event.messageId.endsWith(ts));
    return alone(await slack.until(found, "the question"));
  }
  async function read({ at, ...by }: Actor & { at: number }, since = 0, fromOwn = false) {
    const [place] = await adapter.listReadable("here", by, signal);
    return adapter.readRecent(place?.id ?? "", { since, until: at + 1, fromOwn, maxMessages: 1_000 }, by, signal);
  }
  return { ...stage, adapter, asker, read };
}

describe("what a person missed on Slack", () => {
  test("a channel is read with its threads, and each message has its permalink", async () => {
    const { general, bob, ada, asker, read } = await start();
    const root = bob.say(general, "the plan");
    const reply = bob.say(general, `<@${ada.id}> ok?`, { thread: root });
    const by = await asker();
    const { messages: all, gaps } = await read(by);
    const messages = all.filter(({ author }) => author.name === "Bob");
    expect(gaps).toEqual([]);
    expect(messages.map(({ text, concernsAsker }) => [text, concernsAsker])).toEqual([
      ["the plan", undefined],
      ["@Ada ok?", true],
    ]);
    expect(messages[1]?.link).toMatch(
      new RegExp(`/archives/${general.id}/p${reply.ts.replace(".", "")}\\?thread_ts=${root.ts}&cid=${general.id}$`),
    );
  });

  test("an app that may read 15 messages a minute reads those, and says so", async () => {
    const { general, bob, asker, read } = await start({ simulator: { limits: { history: "commercial" } } });
    for (let index = 0; index < 30; index++) bob.say(general, `${index}`);
    const { messages, gaps } = await read(await asker());
    expect(messages).toHaveLength(15);
    expect(messages.map(({ text }) => text)).toContain("29");
    expect(gaps).toEqual([expect.stringContaining("15 messages a minute")]);
  });

  test("an app that may read 15 messages a minute reads the start of a thread, and says so", async () => {
    const { general, bob, asker, read } = await start({ simulator: { limits: { history: "commercial" } } });
    const thread = bob.say(general, "the plan");
    for (let index = 0; index < 30; index++) bob.say(general, `${index}`, { thread });
    const { messages, gaps } = await read(await asker());
    expect(messages.filter(({ text }) => /^\d+$/.test(text))).toHaveLength(14);
    expect(gaps).toEqual([expect.stringContaining("newest replies of a thread are missing")]);
  });

  test("a range that was read whole has no gap, although older messages are left", async () => {
    const { general, bob, asker, read } = await start({ simulator: { limits: { maxPage: 20 } } });
    for (let index = 0; index < 200; index++) bob.say(general, `old ${index}`);
    const { ts } = bob.say(general, "new");
    const { messages, gaps } = await read(await asker(), Number(ts) * 1_000);
    expect(messages.map(({ text }) => text)).toContain("new");
    expect(gaps).toEqual([expect.stringContaining("older threads")]);
  });

  test("a rate limit on a later page is not taken for Slack's limit for unlisted apps", async () => {
    const { slack, general, bob, asker, read } = await start({ simulator: { limits: { maxPage: 20 } } });
    for (let index = 0; index < 60; index++) bob.say(general, `${index}`);
    const by = await asker();
    slack.failNext("conversations.history", { delayMs: 0 });
    slack.failNext("conversations.history", { retryAfterS: 30 });
    const { messages, gaps } = await read(by);
    expect(messages).toHaveLength(20);
    expect(gaps).toEqual([expect.stringContaining("reading limit")]);
  });

  test("a thread that Slack does not show costs only its own replies", async () => {
    const { slack, general, bob, asker, read } = await start();
    const [first, second] = [bob.say(general, "first"), bob.say(general, "second")];
    bob.say(general, "lost", { thread: first });
    bob.say(general, "kept", { thread: second });
    const by = await asker();
    slack.failNext("conversations.replies", { error: "thread_not_found" });
    const { messages, gaps } = await read(by);
    expect(messages.map(({ text }) => text)).toEqual(expect.arrayContaining(["first", "second"]));
    expect(messages.filter(({ text }) => text === "lost" || text === "kept")).toHaveLength(1);
    expect(gaps).toEqual(["I couldn't read one of the threads."]);
  });

  test("a channel that the bot is not in asks people to add it", async () => {
    const { slack, general, asker, read } = await start();
    const by = await asker();
    general.members.delete(slack.workspace.bot.id);
    await expect(read(by)).rejects.toThrow("I'm not in this channel, so I can't read it.");
  });

  test("all channels are those that the asker and the bot are both in", async () => {
    const { slack, adapter, ada, bob, asker } = await start();
    slack.channel({ name: "hers", kind: "private", members: [ada] });
    slack.channel({ name: "his", members: [bob] });
    const by = await asker();
    const places = await adapter.listReadable("all", by, signal);
    expect(places.map(({ name }) => name)).toEqual(["#general", "#hers"]);
    slack.workspace.scopes.delete("groups:read");
    expect((await adapter.listReadable("all", by, signal)).map(({ name }) => name)).toEqual(["#general"]);
  });
});
