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
    const { messages: all, gap } = await read(by);
    const messages = all.filter(({ author }) => author.name === "Bob");
    expect(gap).toBeUndefined();
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
    const { messages, gap } = await read(await asker());
    expect(messages).toHaveLength(15);
    expect(messages.map(({ text }) => text)).toContain("29");
    expect(gap).toContain("15 messages a minute");
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
