import { describe, expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { action, ada, ben, deleted, edited, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import { SinkError } from "../../src/port/errors.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { events, FINISH, json, startFaultServer, words } from "../support/fault-server.ts";
import { connect } from "../support/gateway-client.ts";

const held = () => Promise.withResolvers<void>();

describe("a button", () => {
  test.each([
    ["the person who asked, where nobody else reads it", ada, "_You stopped this answer._"],
    ["somebody else", { ...ben, isModerator: true }, "_`Ben` stopped this answer._"],
    // The dashboard presses the button with the asker's id.
    ["the dashboard", { ...ada, name: "an administrator" }, "_`an administrator` stopped this answer._"],
  ])("the answer says who stopped it: %s", async (_, author, said) => {
    const reply = { platform: "test", channelId: "direct", isDirect: true as const };
    const { accept, handle, texts, until } = startEngine({ scripts: [["So far", held().promise]] });
    const question = message("Hello", { reply });
    await accept(question);
    await until(() => texts().length === 1);
    await handle({ ...action("stop", toTurnId(question.key), { author }), reply });
    expect(texts()[0]?.split("\n\n")[1]).toBe(said);
  });

  test("Stop by a stranger is refused in private at once; a moderator's press counts", async () => {
    const { accept, handle, calls, channel, texts, until, openStreams } = startEngine({
      scripts: [["So far", held().promise]],
    });
    const question = message("Hello");
    await accept(question);
    await until(() => channel.length === 1);
    await accept(action("stop", toTurnId(question.key), { author: ben }));
    await until(() => channel.length === 2);
    expect(texts()[1]).toBe("Only the person who asked, or a moderator, can do that.");
    expect(openStreams()).toBe(1);
    await handle(action("stop", toTurnId(question.key), { author: { ...ben, isModerator: true } }));
    expect(openStreams()).toBe(0);
    // The answer, and Ben's notice. When the answer ends, Ben gets no second notice.
    expect(calls.filter((call) => call === "post")).toHaveLength(2);
  });

  test('the word "stop" also works before the first text and while a question is waiting', async () => {
    const { accept, handle, texts, requests, until } = startEngine({ scripts: [[held().promise]] });
    await accept(message("Hello"));
    await accept(message("And you?", { author: ben }));
    while (requests.length === 0) await new Promise(setImmediate);
    await accept(message("stop", { author: ben }));
    await until(() => texts().length === 1);
    // The answer is Ada's, and Ben's question has not started.
    expect(texts()).toEqual(["Only the person who asked, or a moderator, can do that."]);
    await handle(message("stop"));
    expect(texts().slice(1)).toEqual([
      expect.stringMatching(/^_`\w+` stopped/),
      expect.stringMatching(/^_`\w+` stopped/),
    ]);
    expect(requests).toHaveLength(1);
  });

  test('the word "stop" reaches an answer elsewhere in its channel, if each mention starts a conversation', async () => {
    const { accept, handle, channel, texts, until } = startEngine({ scripts: [["So far", held().promise]] });
    await accept(message("Hello", { conversationId: "test:a" }));
    await until(() => channel.length === 1);
    await accept(message("stop", { conversationId: "test:b", author: ben }));
    await until(() => channel.length === 2);
    expect(texts()[1]).toMatch(/^I'm not answering anything here/);
    await handle(message("stop", { conversationId: "test:c" }));
    expect(texts()[0]).toMatch(/^So far\n\n_`\w+` stopped/);
    expect(texts()).toHaveLength(2);
  });

  test("a late Stop shows the whole answer if the platform had refused the last edits", async () => {
    const { accept, handle, idle, texts, channel, setTrouble, until } = startEngine({
      scripts: [["So far", " and more", held().promise], ["Again"]],
    });
    setTrouble((call) => (call === "edit" ? { kind: "forbidden" } : undefined));
    const question = message("Hello");
    await accept(question);
    await until(() => channel.length === 1);
    await idle();
    const stop = { action: "stop", turnId: toTurnId(question.key), label: "Stop" };
    expect(channel[0]?.draft.buttons).toEqual([stop]);
    await handle(action("retry", toTurnId(question.key)));
    expect(texts()[1]).toMatch(/can no longer change this answer/);
    setTrouble(() => undefined);
    for (const author of [ben, { ...ben, isModerator: true }]) {
      await handle(action("stop", toTurnId(question.key), { author }));
      expect(texts().at(-1)).toBe("This answer has already ended.");
    }
    expect(channel[0]?.draft).toMatchObject({ streaming: false, buttons: [{ action: "retry" }] });
    expect(texts()[0]).toMatch(/_I can't write more/);
  });

  test("a late Stop does not change an answer that is already complete", async () => {
    const { accept, handle, idle, texts, setTrouble } = startEngine({
      scripts: [["So far", " and more", held().promise], ["Again"]],
    });
    const [begun, refusal] = [held(), Promise.withResolvers<never>()];
    setTrouble((call) => {
      if (call !== "edit") return undefined;
      begun.resolve();
      return refusal.promise;
    });
    const question = message("Hello");
    await accept(question);
    await begun.promise;
    await accept(edited(question, "Hello, in other words"));
    setTrouble(() => undefined);
    refusal.reject(new SinkError("forbidden", "the place is closed"));
    await idle();
    expect(texts()).toEqual(["Again"]);
    await handle(action("stop", toTurnId(question.key)));
    expect(texts()).toEqual(["Again", "This answer has already ended."]);
  });

  test("a Retry that fails keeps the shown answer, and can be pressed again", async () => {
    const cut = new GatewayError("interrupted", "cut");
    const { handle, texts, requests, history } = startEngine({
      scripts: [["So far", cut], [new GatewayError("overloaded", "busy")], ["Whole"]],
    });
    const question = await handle(message("Hello"));
    await handle(action("retry", toTurnId(question.key)));
    expect(texts()).toEqual([expect.stringMatching(/^So far\n\n_.*_$/)]);
    expect((await history.read("test:a", { maxEntries: 1 })).entries[0]?.messages).toMatchObject([
      { content: "So far" },
    ]);
    await handle(action("retry", toTurnId(question.key)));
    expect(texts()).toEqual(["Whole"]);
    expect(requests[2]?.messages.map(({ content }) => content)).toEqual(["Be kind.", "Hello"]);
  });

  test("Retry calls a model at once that asked to wait, while new questions wait", async () => {
    const busy = json(429, {}, { "retry-after": "3600" });
    const { url, received } = await startFaultServer(busy, events(words("Here I am"), FINISH));
    const { handle, texts } = startEngine({ gateway: connect(url) });
    const question = await handle(message("Hello"));
    await handle(message("Anybody?"));
    expect(received).toHaveLength(1);
    await handle(action("retry", toTurnId(question.key)));
    expect(received).toHaveLength(2);
    expect(texts()[0]).toBe("Here I am");
  });

  test("Retry pressed twice creates one new answer", async () => {
    const scripts = [[new GatewayError("overloaded", "busy")], ["Good"], ["A second one"]];
    const { accept, handle, texts, requests } = startEngine({ scripts });
    const question = await handle(message("Hello"));
    await accept(action("retry", toTurnId(question.key)));
    await handle(action("retry", toTurnId(question.key)));
    expect(texts()).toEqual(["Good"]);
    expect(requests).toHaveLength(2);
  });

  test("Retry asks the question again at its place in the conversation, however long the conversation went on", async () => {
    const scripts = [[new GatewayError("overloaded", "busy")], ["About tea"], ["At last"]];
    const { handle, texts, requests, history } = startEngine({ scripts });
    const question = await handle(message("About coffee?"));
    await handle(message("About tea?"));
    await handle(action("retry", toTurnId(question.key)));
    expect(texts()).toEqual(["At last", "About tea"]);
    expect(requests[2]?.messages.map(({ content }) => content)).toEqual(["Be kind.", "About coffee?"]);
    const { entries } = await history.read("test:a", { maxEntries: 10 });
    expect(entries.map(({ messages }) => messages[0]?.content)).toEqual([
      "About coffee?",
      "At last",
      "About tea?",
      "About tea",
    ]);
  });

  test("Retry does nothing if the question was deleted", async () => {
    const { accept, handle, texts, requests } = startEngine({ scripts: [[new GatewayError("overloaded", "busy")]] });
    const question = await handle(message("Hello"));
    await accept(deleted(question));
    await handle(action("retry", toTurnId(question.key)));
    expect(requests).toHaveLength(1);
    expect(texts().at(-1)).toContain("deleted");
  });

  test("Stop also ends an answer that an edit has just restarted", async () => {
    const [more, slow] = [held(), held()];
    const { accept, idle, channel, until, setTrouble, calls, requests, openStreams } = startEngine({
      scripts: [
        ["Wrong", more.promise, " and more", held().promise],
        ["Right", held().promise],
      ],
    });
    setTrouble((call) => (call === "edit" ? slow.promise : undefined));
    const question = message("Helo");
    await accept(question);
    await until(() => channel.length === 1);
    more.resolve();
    while (!calls.includes("edit")) await new Promise(setImmediate);
    await accept(edited(question, "Hello"));
    await accept(action("stop", toTurnId(question.key)));
    slow.resolve();
    await idle();
    expect(requests).toHaveLength(1);
    expect(openStreams()).toBe(0);
    expect(channel[0]?.draft).toMatchObject({
      streaming: false,
      markdown: expect.stringContaining("stopped this answer"),
    });
  });

  test("Stop ends an answer while the bot downloads the files of its question", async () => {
    const platform = fakePlatform();
    const [fetching, never] = [held(), held()];
    platform.adapter.openAttachment = () => {
      fetching.resolve();
      return never.promise.then(() => Promise.reject(new Error("gone")));
    };
    const { accept, handle, texts, requests } = startEngine({ platform });
    const question = message("Look", { attachments: [{ platform: "test", id: "f", name: "f.txt", sizeBytes: 3 }] });
    await accept(question);
    await fetching.promise;
    await handle(action("stop", toTurnId(question.key)));
    expect(texts()).toEqual([expect.stringContaining("stopped this answer")]);
    expect(requests).toHaveLength(0);
  });

  test("Continue extends a truncated answer once, for people who are allowed to", async () => {
    const { accept, handle, texts, channel, requests } = startEngine({
      scripts: [["The first half", { finish: "length" }], ["and the second."]],
    });
    const question = await handle(message("Tell me everything"));
    expect(channel[0]?.draft.buttons).toMatchObject([{ action: "continue" }]);
    await accept(action("continue", toTurnId(question.key), { author: ben }));
    await accept(action("continue", toTurnId(question.key)));
    await handle(action("continue", toTurnId(question.key)));
    expect(texts()).toContain("and the second.");
    expect(texts().filter((text) => text === "and the second.")).toHaveLength(1);
    expect(texts().some((text) => text.startsWith("Only the person who asked"))).toBe(true);
    expect(requests).toHaveLength(2);
    expect(requests[1]?.messages.slice(-2)).toMatchObject([
      { role: "assistant", content: "The first half" },
      { role: "user", content: "Go on exactly where you stopped." },
    ]);
  });

  test("a button of an unknown answer gives that reason to the person who pressed", async () => {
    const { handle, texts } = startEngine();
    await handle(action("retry", "unknown"));
    expect(texts()).toEqual([expect.stringContaining("too old")]);
  });
});
