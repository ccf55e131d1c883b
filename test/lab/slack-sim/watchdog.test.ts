import { describe, expect, test } from "vitest";
import { callApi, createWebClient, postMessage } from "../../../lab/slack-sim/web-api.ts";
import type { Json } from "../../../lab/slack-sim/world.ts";
import { startGeneral } from "../../support/slack.ts";

async function startThread() {
  const { slack, ada, general } = await startGeneral({ limits: { postBurst: 100 } });
  const question = ada.say(general, "tell me");
  const client = createWebClient(slack);
  async function post(text: string, args: Json = {}): Promise<string> {
    const { body } = await callApi(slack, "chat.postMessage", {
      channel: general.id,
      thread_ts: question.ts,
      text,
      ...args,
    });
    return String(body["ts"]);
  }
  const update = (ts: string, text: string) => client.chat.update({ channel: general.id, ts, text });
  /** The kinds of all recorded violations. The test expects them all. */
  function kinds(): string[] {
    const found = slack.violations.map(({ kind }) => kind);
    slack.allow(...found);
    return found;
  }
  return { slack, ada, general, question, post, update, kinds };
}

const metadata = (id: string) => ({ metadata: { event_type: "turn", event_payload: { id } } });

describe("the watchdog of the Slack simulator", () => {
  test("two messages with the same metadata are a double post, whatever their text", async () => {
    const { post, kinds } = await startThread();
    await post("one", metadata("a"));
    await post("two", metadata("b"));
    expect(kinds()).toEqual([]);
    await post("three", metadata("a"));
    expect(kinds()).toEqual(["double-post"]);
  });

  test("the same answer twice to one message is a double post", async () => {
    const { post, kinds } = await startThread();
    await post("four");
    expect(kinds()).toEqual([]);
    await post("four");
    expect(kinds()).toEqual(["double-post"]);
  });

  test("the same answer to two messages, or in two threads, is not a double post", async () => {
    const { ada, general, question, post, kinds } = await startThread();
    await post("four");
    ada.say(general, "and again?", { thread: question });
    await post("four");
    const other = ada.say(general, "2+2?");
    await post("four", { thread_ts: other.ts });
    expect(kinds()).toEqual([]);
  });

  test("two messages that end with the same text are a double post, recorded once", async () => {
    const { post, update, kinds } = await startThread();
    const first = await post("first");
    const second = await post("second");
    await update(first, "the answer");
    await update(second, "the answer");
    await update(second, "the answer");
    expect(kinds()).toEqual(["double-post"]);
  });

  test("two equal answers to one command at the top level are a double post", async () => {
    const { slack, ada, general, kinds } = await startThread();
    await ada.command("/ask", "x", general);
    const client = createWebClient(slack);
    // The person's message at the top level can be answered there too.
    for (let count = 0; count < 3; count++) await postMessage(client, { channel: general.id, text: "here" });
    expect(kinds()).toEqual(["double-post"]);
  });

  test.each([
    ["Hello wor", "Hello"],
    ["Hello world", ""],
    ["Hello world …", "Hello …"],
    ["Hello **bold and**", "Hello **bold**"],
  ])("the watchdog notices that %j becomes %j, which goes backwards", async (before, after) => {
    const { post, update, kinds } = await startThread();
    const ts = await post(before);
    await update(ts, `${after}.`);
    expect(kinds()).toEqual(["backwards"]);
  });

  test.each([
    ["Hello", "Hello world"],
    ["Hello …", "Hello"],
    ["```js\nlet a\n```", "```js\nlet a = 1;\n```"],
    ["_thinking_", "Hello"],
  ])("the watchdog accepts that %j becomes %j", async (before, after) => {
    const { post, update, kinds } = await startThread();
    await update(await post(before), after);
    expect(kinds()).toEqual([]);
  });

  test("an answer can start over after the question was edited, or a button pressed", async () => {
    const { slack, ada, general, question, post, update, kinds } = await startThread();
    const button = { type: "button", action_id: "retry", text: { type: "plain_text", text: "Retry" } };
    const ts = await post("Hello world", { blocks: [{ type: "actions", elements: [button] }] });
    ada.edit(question, "tell me more");
    await update(ts, "Hello");
    const [answer] = slack.answers(general, question);
    if (answer === undefined) throw new Error("no answer");
    answer.content.blocks = [{ type: "actions", elements: [button] }];
    await ada.press(answer, "retry");
    await update(ts, "H");
    expect(kinds()).toEqual([]);
    await update(ts, "Hello");
    await update(ts, "Hel");
    await update(ts, "Hell");
    expect(kinds()).toEqual(["backwards"]);
  });

  test("text that would notify people is recorded once per message, and escaped text never", async () => {
    const { slack, ada, general, post, update, kinds } = await startThread();
    const ts = await post(`hello <@${ada.id}>`);
    await update(ts, `hello <@${ada.id}> and more`);
    await post("hello &lt;!channel&gt;");
    expect(slack.pings).toEqual([{ channelId: general.id, ts, written: `<@${ada.id}>` }]);
    expect(slack.violations.map(({ sentence }) => sentence)).toEqual([
      `A message of the app in #general says <@${ada.id}>, which notifies people.`,
    ]);
    kinds();
  });

  test("a mention in two pieces of a stream is a ping", async () => {
    const { slack, ada, general, question, kinds } = await startThread();
    const people = { recipient_team_id: slack.workspace.id, recipient_user_id: ada.id };
    const client = createWebClient(slack);
    const place = { channel: general.id, thread_ts: question.ts, ...people };
    const { ts = "" } = await client.chat.startStream({ ...place, markdown_text: "hey <!he" });
    expect(slack.pings).toEqual([]);
    await client.chat.appendStream({ channel: general.id, ts, markdown_text: "re>" });
    expect(kinds()).toEqual(["ping"]);
  });

  test("people can notify others, repeat themselves and shorten their messages", async () => {
    const { ada, general, kinds } = await startThread();
    const message = ada.say(general, "<!channel> one two");
    ada.say(general, "<!channel> one two");
    ada.edit(message, "<!channel> one");
    expect(kinds()).toEqual([]);
  });
});
