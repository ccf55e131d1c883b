import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { action, ben, command, deleted, edited, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { MAX_TEXT_CHARS } from "../../src/bot/accept.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import { toTurnId } from "../../src/port/ids.ts";

const held = () => Promise.withResolvers<void>();

describe("an event that the bot accepts", () => {
  test("an event that replies to a message belongs to that message's conversation", async () => {
    const { handle, requests } = startEngine();
    const root = await handle(message("I like tea", { conversationId: "test:root" }));
    await handle(message("What do I like?", { conversationId: "test:other", inReplyTo: root.messageId }));
    expect(requests[1]?.messages.map(({ content }) => content)).toEqual(["Be kind.", "I like tea\n\nWhat do I like?"]);
  });

  test("an event that replies to an answer belongs to its conversation, even while the bot writes the answer", async () => {
    const hold = held();
    const { accept, idle, channel, until, requests } = startEngine({ scripts: [["One", hold.promise], ["Two"]] });
    await accept(message("Begin", { conversationId: "test:root" }));
    await until(() => channel.length === 1);
    await setImmediate();
    const reply = channel[0]?.id;
    await accept(message("Go on", { conversationId: "test:other", author: ben, ...(reply && { inReplyTo: reply }) }));
    hold.resolve();
    await idle();
    expect(requests[1]?.messages[1]?.content).toBe("Ada: Begin");
  });

  test("an event that replies to a waiting message joins its queue", async () => {
    const hold = held();
    const { accept, idle, requests } = startEngine({ scripts: [[hold.promise, "One"], ["Two"], ["Three"]] });
    await accept(message("first", { conversationId: "test:root" }));
    const waiting = message("second", { conversationId: "test:root", author: ben });
    await accept(waiting);
    await accept(message("third", { conversationId: "test:other", inReplyTo: waiting.messageId }));
    hold.resolve();
    await idle();
    expect(requests[2]?.messages.map(({ content }) => content)).toContain("Ben: second");
  });

  test("the bot keeps the beginning and end of a message that is too long, and says so in the answer", async () => {
    const { accept, handle, history, channel } = startEngine();
    const long = message(`Summarise: ${"lorem ipsum ".repeat(20_000)} In one word.`);
    await accept(long);
    await handle(edited(long, `Shorten: ${"dolor ".repeat(40_000)} In two words.`));
    const { entries } = await history.read("test:a", { maxEntries: 10 });
    const [text] = entries.flatMap(({ messages }) => messages.map(({ content }) => content));
    expect(text).toMatch(/^Shorten: dolor .*\n\[… \d+ characters left out …\]\n.* In two words\.$/s);
    expect(text?.length).toBeLessThan(MAX_TEXT_CHARS + 100);
    expect(JSON.stringify(channel)).toContain("Your message was too long");
  });

  test("an edit or a deletion reaches its message in any conversation", async () => {
    const { accept, handle, history } = startEngine();
    const [kept, unwanted] = [message("I like tea"), message("forget this")];
    await handle(kept);
    await handle(unwanted);
    await accept({ ...edited(kept, "I like coffee"), conversationId: "test:elsewhere" });
    await handle({ ...deleted(unwanted), conversationId: "test:elsewhere" });
    const { entries } = await history.read("test:a", { maxEntries: 10 });
    const texts = entries.flatMap(({ messages }) => messages.map(({ content }) => content));
    expect(texts).toContain("I like coffee");
    expect(texts).not.toContain("forget this");
  });

  test("a button press belongs to the conversation of its turn", async () => {
    const { handle, texts } = startEngine({ scripts: [[new GatewayError("interrupted", "cut")], ["Good."]] });
    const question = await handle(message("Hello", { conversationId: "test:root" }));
    await handle(action("retry", toTurnId(question.key), { conversationId: "test:elsewhere" }));
    expect(texts()).toEqual(["Good."]);
  });

  test("a reply to an unknown message keeps its conversation", async () => {
    const { handle, history } = startEngine();
    await handle(message("Hello", { conversationId: "test:own", inReplyTo: "test:unknown" }));
    expect((await history.read("test:own", { maxEntries: 10 })).entries).toHaveLength(2);
  });

  test("the bot rejects and counts an event that it cannot accept, so the platform can redeliver the event", async () => {
    const { accept, queue, metrics } = startEngine();
    await queue.close(0);
    await expect(accept(message("too late"))).rejects.toThrow("shutting down");
    expect((await metrics.render()).body).toContain("palaver_intake_failures_total 1\n");
  });
});

describe("a private question", () => {
  const only = { platform: "test", channelId: "general", visibleTo: "ada" };

  test("each private question starts a new conversation, and a later asker sees nothing of the earlier conversations", async () => {
    const { handle, requests, history } = startEngine({ scripts: [["A secret."], ["Hello."], ["Yes."]] });
    await handle(message("my secret", { reply: only }));
    for (const event of [message("Well?", { author: ben }), message("and mine again", { reply: only })])
      await handle(event);
    const contents = requests.map(({ messages }) => messages.slice(1).map(({ content }) => content));
    expect(contents).toEqual([["my secret"], ["Well?"], ["and mine again"]]);
    expect((await history.read("test:a", { maxEntries: 10 })).entries).toHaveLength(2);
  });

  test("a private question keeps its conversation when its author continues or retries it", async () => {
    const cut = new GatewayError("interrupted", "cut");
    const { handle, requests, channel, history } = startEngine({
      scripts: [[cut], ["Half", { finish: "length" }], [" and half."]],
    });
    const question = await handle(message("my secret", { reply: only }));
    for (const name of ["retry", "continue"] as const) {
      await handle({ ...action(name, toTurnId(question.key)), reply: only });
    }
    expect(requests.at(-1)?.messages.map(({ content }) => content)).toContain("my secret");
    expect(channel.length).toBeGreaterThan(1);
    expect((await history.read("test:a", { maxEntries: 10 })).entries).toEqual([]);
  });

  test("a public message never joins a private question's conversation, even in reply to the question", async () => {
    const { handle, requests } = startEngine();
    const question = await handle(message("my secret", { reply: only }));
    await handle(message("Well?", { author: ben, inReplyTo: question.messageId }));
    expect(JSON.stringify(requests[1])).not.toContain("my secret");
  });

  test("a private question is in its author's /export, and another person's /forget does not erase the question", async () => {
    const { handle, history } = startEngine();
    await handle(message("my secret", { reply: only }));
    await handle(command("forget", "conversation", { author: { ...ben, mayConfigure: true } }));
    const kept = await history.exportAuthor("test", "ada");
    expect(kept.conversations.map(({ entries }) => entries.length)).toEqual([2]);
    await handle(command("forget", "me for good"));
    expect((await history.exportAuthor("test", "ada")).conversations).toEqual([]);
  });

  test("a private question includes no earlier messages of others, which stay for the others", async () => {
    const platform = fakePlatform();
    const said = { messageId: "test:before", author: ben, text: "before", attachments: [], at: 1 };
    platform.adapter.readEarlier = async () => ({ messages: [said] });
    const { handle, requests } = startEngine({ platform });
    await handle(message("my secret", { reply: only }));
    await handle(message("Well?"));
    expect(JSON.stringify(requests[0])).not.toContain("before");
    expect(JSON.stringify(requests[1])).toContain("before");
  });
});

describe("a spoken command", () => {
  test("a spoken command to the bot applies to the conversation of the message it replies to", async () => {
    const { handle, texts, requests, history } = startEngine();
    const root = await handle(message("my secret", { conversationId: "test:root" }));
    await handle(message("!forget conversation", { conversationId: "test:other", inReplyTo: root.messageId }));
    expect(texts().at(-1)).toMatch(/^Erased 2 /);
    expect((await history.read("test:root", { maxEntries: 10 })).entries).toEqual([]);
    expect(requests).toHaveLength(1);
  });

  test("a spoken command without a mention counts only if the bot follows the conversation", async () => {
    const { accept, handle, texts } = startEngine();
    await handle(message("!help", { addressed: "open" }));
    expect(texts()).toEqual([]);
    await handle(message("Hello"));
    await accept(message("!help", { addressed: "open", author: ben }));
    await handle(message("!help", { addressed: "other", author: ben }));
    expect(texts()).toEqual(["Hello.", expect.stringContaining("/forget")]);
  });

  test("the bot runs a spoken command once however often it arrives, and answers a text that only looks like a command", async () => {
    const { accept, handle, texts, requests } = startEngine();
    const said = message("!help");
    await Promise.all([accept(said), accept(said)]);
    await handle(message("!important: what is the time?"));
    expect(texts()).toEqual([expect.stringContaining("/forget"), "Hello."]);
    expect(requests).toHaveLength(1);
  });
});
