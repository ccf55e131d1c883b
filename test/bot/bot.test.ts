import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { GatewayError } from "../../src/gateway/errors.ts";
import { SinkError } from "../../src/port/errors.ts";
import type { InboundEvent } from "../../src/port/events.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { openEventTable } from "../../src/queue/event-table.ts";
import { startEngine } from "../support/engine.ts";
import { action, ben, command, deleted, edited, message } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";
import { recordingLog } from "../support/log.ts";

const held = () => Promise.withResolvers<void>();

describe("a message", () => {
  test("is answered once, with the conversation so far before the model", async () => {
    const { accept, idle, texts, requests, violations } = startEngine({ scripts: [["Hello ", "Ada."], ["Ada."]] });
    await accept(message("I am Ada."));
    await idle();
    await accept(message("Who am I?"));
    await idle();
    expect(texts()).toEqual(["Hello Ada.", "Ada."]);
    expect(requests[1]?.messages.map(({ role, content }) => [role, content])).toEqual([
      ["system", "Be kind."],
      ["user", "I am Ada."],
      ["assistant", "Hello Ada."],
      ["user", "Who am I?"],
    ]);
    expect(requests[1]?.user).toBe("pseudonym-of-ada");
    expect(violations).toEqual([]);
  });

  test("delivered twice is answered once", async () => {
    const { accept, idle, texts, requests } = startEngine();
    const event = message("Hello");
    await Promise.all([accept(event), accept(event)]);
    await idle();
    expect(texts()).toEqual(["Hello."]);
    expect(requests).toHaveLength(1);
  });

  test("grows in place: what was streamed is edited into one message", async () => {
    const hold = held();
    const { accept, idle, channel, until, calls } = startEngine({ scripts: [["One", hold.promise, " two"]] });
    await accept(message("Count"));
    await until(() => channel[0]?.draft.markdown === "One");
    expect(channel[0]?.draft).toMatchObject({ streaming: true, buttons: [{ action: "stop" }] });
    hold.resolve();
    await idle();
    expect(channel.map(({ draft }) => draft)).toEqual([{ markdown: "One two", streaming: false, buttons: [] }]);
    expect(calls.filter((name) => name === "post")).toHaveLength(1);
  });

  test("of one author that waited with others of theirs is answered together with them", async () => {
    const hold = held();
    const { accept, idle, texts, requests } = startEngine({ scripts: [[hold.promise, "first"], ["rest"]] });
    await accept(message("one"));
    await accept(message("two"));
    await accept(message("three"));
    hold.resolve();
    await idle();
    expect(texts()).toEqual(["first", "rest"]);
    expect(requests[1]?.messages.at(-1)?.content).toBe("two\n\nthree");
  });

  test("to nobody in particular is answered only while the bot follows the conversation", async () => {
    const { accept, idle, texts } = startEngine();
    await accept(message("Lunch?", { addressed: "open" }));
    await idle();
    expect(texts()).toEqual([]);
    await accept(message("Bot, hello"));
    await accept(message("And you?", { addressed: "open", author: ben }));
    await idle();
    expect(texts()).toHaveLength(2);
    await accept(message("@Ben what do you think?", { addressed: "other" }));
    await accept(message("Nothing", { addressed: "open", author: ben }));
    await idle();
    expect(texts()).toHaveLength(2);
  });

  test("written before the bot was asked is not answered, also when it comes after the question", async () => {
    const { accept, idle, texts } = startEngine();
    const before = message("I like soup.", { addressed: "open", author: ben });
    await accept(message("Bot, decide"));
    await accept(before);
    await idle();
    expect(texts()).toHaveLength(1);
    await accept(message("And then?", { addressed: "open", author: ben }));
    await idle();
    expect(texts()).toHaveLength(2);
  });

  test("longer than one message can be arrives whole, in several", async () => {
    const words = Array.from({ length: 3_000 }, (_, index) => `word${index}`).join(" ");
    const { accept, idle, texts, violations } = startEngine({ scripts: [[words]] });
    await accept(message("Write a lot"));
    await idle();
    expect(texts().length).toBeGreaterThan(5);
    expect(texts().join(" ")).toBe(words);
    expect(violations).toEqual([]);
  });
});

describe("an ending", () => {
  test("in an error keeps the text so far, says why, and offers to ask again", async () => {
    const cut = new GatewayError("interrupted", "socket closed by sk-secret");
    const { accept, idle, channel } = startEngine({ scripts: [["So far", cut]] });
    await accept(message("Hello"));
    await idle();
    expect(channel[0]?.draft.markdown).toMatch(/^So far\n\n_.*Retry.*_$/);
    expect(channel[0]?.draft.markdown).not.toContain("secret");
    expect(channel[0]?.draft).toMatchObject({ streaming: false, buttons: [{ action: "retry" }] });
  });

  test.each([[[]], [[" \n"]], [["\0\u202E"]]])(
    "without any text that can be seen is one plain sentence",
    async (script) => {
      const { accept, idle, texts } = startEngine({ scripts: [script] });
      await accept(message("Hello"));
      await idle();
      expect(texts()).toEqual([expect.stringContaining("empty answer")]);
    },
  );

  test("leaves no progress behind", async () => {
    const { accept, idle, progress } = startEngine({ scripts: [[new GatewayError("unreachable", "refused")]] });
    await accept(message("Hello"));
    await idle();
    expect(progress.at(-1)).toBe("");
  });
});

describe("a question that the gateway refuses", () => {
  test("is not in front of the model again, and Retry asks it all the same", async () => {
    const refusal = new GatewayError("rejected", "no", { status: 400, code: "content_filter" });
    const { accept, idle, requests } = startEngine({ scripts: [["Hello."], [refusal], ["Fine."], ["After all."]] });
    const question = message("something forbidden");
    for (const event of [message("Good morning"), question, message("something harmless")]) {
      await accept(event);
      await idle();
    }
    expect(requests[2]?.messages.map(({ content }) => content)).toEqual([
      "Be kind.",
      "Good morning",
      "Hello.",
      "something harmless",
    ]);
    await accept(action("retry", toTurnId(question.key)));
    await idle();
    expect(requests[3]?.messages.at(-1)?.content).toBe("something forbidden");
  });

  test("stays when the gateway only could not be reached", async () => {
    const { accept, idle, requests } = startEngine({ scripts: [[new GatewayError("unreachable", "no")], ["Fine."]] });
    await accept(message("What is the tide?"));
    await idle();
    await accept(message("Well?"));
    await idle();
    expect(requests[1]?.messages.at(-1)?.content).toBe("What is the tide?\n\nWell?");
  });
});

describe("a button", () => {
  test("stops the answer, closes the stream, and keeps what was said", async () => {
    const { accept, idle, channel, until, openStreams } = startEngine({ scripts: [["So far", held().promise]] });
    const question = message("Hello");
    await accept(question);
    await until(() => channel.length === 1);
    await accept(action("stop", toTurnId(question.key)));
    await idle();
    expect(channel[0]?.draft.markdown).toMatch(/^So far\n\n_Stopped/);
    expect(openStreams()).toBe(0);
  });

  test("pressed by somebody else says so to them at once, and does nothing; a moderator's does", async () => {
    const { accept, idle, calls, channel, texts, until, openStreams } = startEngine({
      scripts: [["So far", held().promise]],
    });
    const question = message("Hello");
    await accept(question);
    await until(() => channel.length === 1);
    await accept(action("stop", toTurnId(question.key), { author: ben }));
    await until(() => channel.length === 2);
    expect(texts()[1]).toBe("Only the person who asked, or a moderator, can do that.");
    expect(openStreams()).toBe(1);
    await accept(action("stop", toTurnId(question.key), { author: { ...ben, isModerator: true } }));
    await idle();
    expect(openStreams()).toBe(0);
    // The answer, and what ben was told: when it is over he is not told again.
    expect(calls.filter((call) => call === "post")).toHaveLength(2);
  });

  test("that stops says so when there is nothing left to stop, and changes nothing", async () => {
    const { accept, idle, texts, channel } = startEngine({ scripts: [["Done"]] });
    const question = message("Hello");
    await accept(question);
    await idle();
    await accept(action("stop", toTurnId(question.key)));
    await idle();
    expect(texts()).toEqual(["Done", "This answer has ended already."]);
    expect(channel[0]?.draft.buttons).toEqual([]);
  });

  test("shows the end that its place did not take when it came", async () => {
    const { accept, idle, texts, channel, setTrouble, until } = startEngine({
      scripts: [["So far", " and more", held().promise], ["Again"]],
    });
    setTrouble((call) => (call === "edit" ? { kind: "forbidden" } : undefined));
    const question = message("Hello");
    await accept(question);
    await until(() => channel.length === 1);
    await idle();
    const stop = { action: "stop", turnId: toTurnId(question.key), label: "Stop" };
    expect(channel[0]?.draft.buttons).toEqual([stop]);
    await accept(action("retry", toTurnId(question.key)));
    await idle();
    expect(texts()[1]).toMatch(/cannot write to this answer any more/);
    setTrouble(() => undefined);
    for (const author of [ben, { ...ben, isModerator: true }]) {
      await accept(action("stop", toTurnId(question.key), { author }));
      await idle();
      expect(texts().at(-1)).toBe("This answer has ended already.");
    }
    expect(channel[0]?.draft).toMatchObject({ streaming: false, buttons: [{ action: "retry" }] });
    expect(texts()[0]).toMatch(/_Interrupted: the channel takes no more/);
  });

  test("that stops leaves an answer alone whose place took it after all", async () => {
    const { accept, idle, texts, setTrouble } = startEngine({
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
    await accept(action("stop", toTurnId(question.key)));
    await idle();
    expect(texts()).toEqual(["Again", "This answer has ended already."]);
  });

  test("writes the answer once more in the same message, from the same question", async () => {
    const cut = new GatewayError("interrupted", "cut");
    const { accept, idle, texts, requests } = startEngine({
      scripts: [["Bad", cut], ["Worse", cut], ["Later"], ["Good"]],
    });
    const question = message("Hello");
    await accept(question);
    await idle();
    await accept(action("retry", toTurnId(question.key)));
    await idle();
    expect(texts()).toEqual([expect.stringMatching(/^Worse\n/)]);
    expect(requests[1]?.messages.map(({ content }) => content)).toEqual(["Be kind.", "Hello"]);
    await accept(message("Next"));
    await idle();
    await accept(action("retry", toTurnId(question.key)));
    await idle();
    expect(texts()).toEqual(["Good", "Later"]);
    expect(requests[3]?.messages).toHaveLength(2);
  });

  test("in vain takes nothing away that people have read, and may be asked for again", async () => {
    const cut = new GatewayError("interrupted", "cut");
    const { accept, idle, texts, requests, history } = startEngine({
      scripts: [["So far", cut], [new GatewayError("overloaded", "busy")], ["Whole"]],
    });
    const question = message("Hello");
    await accept(question);
    await idle();
    await accept(action("retry", toTurnId(question.key)));
    await idle();
    expect(texts()).toEqual([expect.stringMatching(/^So far\n\n_.*_$/)]);
    expect((await history.read("test:a", { maxEntries: 1 })).entries[0]?.messages).toMatchObject([
      { content: "So far" },
    ]);
    await accept(action("retry", toTurnId(question.key)));
    await idle();
    expect(texts()).toEqual(["Whole"]);
    expect(requests[2]?.messages.map(({ content }) => content)).toEqual(["Be kind.", "Hello"]);
  });

  test("pressed twice for one more answer brings one", async () => {
    const scripts = [[new GatewayError("overloaded", "busy")], ["Good"], ["A second one"]];
    const { accept, idle, texts, requests } = startEngine({ scripts });
    const question = message("Hello");
    await accept(question);
    await idle();
    await accept(action("retry", toTurnId(question.key)));
    await accept(action("retry", toTurnId(question.key)));
    await idle();
    expect(texts()).toEqual(["Good"]);
    expect(requests).toHaveLength(2);
  });

  test("asks again from the place of the question, however long the conversation went on without an answer to it", async () => {
    const scripts = [[new GatewayError("overloaded", "busy")], ["About tea"], ["At last"]];
    const { accept, idle, texts, requests, history } = startEngine({ scripts });
    const question = message("About coffee?");
    await accept(question);
    await idle();
    await accept(message("About tea?"));
    await idle();
    await accept(action("retry", toTurnId(question.key)));
    await idle();
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

  test("asks nothing again whose question was deleted meanwhile", async () => {
    const { accept, idle, texts, requests } = startEngine({ scripts: [[new GatewayError("overloaded", "busy")]] });
    const question = message("Hello");
    await accept(question);
    await idle();
    await accept(deleted(question));
    await accept(action("retry", toTurnId(question.key)));
    await idle();
    expect(requests).toHaveLength(1);
    expect(texts().at(-1)).toContain("deleted");
  });

  test("stops also the answer that an edit has just begun again", async () => {
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
    expect(channel[0]?.draft).toMatchObject({ streaming: false, markdown: expect.stringContaining("Stopped") });
  });

  test("stops an answer while the files of its question are fetched", async () => {
    const platform = fakePlatform();
    const [fetching, never] = [held(), held()];
    platform.adapter.openAttachment = () => {
      fetching.resolve();
      return never.promise.then(() => Promise.reject(new Error("gone")));
    };
    const { accept, idle, texts, requests } = startEngine({ platform });
    const question = message("Look", { attachments: [{ platform: "test", id: "f", name: "f.txt", sizeBytes: 3 }] });
    await accept(question);
    await fetching.promise;
    await accept(action("stop", toTurnId(question.key)));
    await idle();
    expect(texts()).toEqual([expect.stringContaining("Stopped")]);
    expect(requests).toHaveLength(0);
  });

  test("works after a restart", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [["Bad", new GatewayError("interrupted", "cut")]] });
    const question = message("Hello");
    await first.accept(question);
    await first.idle();
    const second = startEngine({ database, platform, scripts: [["Good"]] });
    await second.accept(action("retry", toTurnId(question.key)));
    await second.idle();
    expect(second.texts()).toEqual(["Good"]);
  });

  test("goes on with an answer that was cut off, once, and for those who may", async () => {
    const { accept, idle, texts, channel, requests } = startEngine({
      scripts: [["The first half", { finish: "length" }], ["and the second."]],
    });
    const question = message("Tell me everything");
    await accept(question);
    await idle();
    expect(channel[0]?.draft.buttons).toMatchObject([{ action: "continue" }]);
    await accept(action("continue", toTurnId(question.key), { author: ben }));
    await accept(action("continue", toTurnId(question.key)));
    await accept(action("continue", toTurnId(question.key)));
    await idle();
    expect(texts()).toContain("and the second.");
    expect(texts().filter((text) => text === "and the second.")).toHaveLength(1);
    expect(texts().some((text) => text.startsWith("Only the person who asked"))).toBe(true);
    expect(requests).toHaveLength(2);
    expect(requests[1]?.messages.slice(-2)).toMatchObject([
      { role: "assistant", content: "The first half" },
      { role: "user", content: "Go on exactly where you stopped." },
    ]);
  });

  test("of an answer that is no longer known says so, to the one who pressed", async () => {
    const { accept, idle, texts } = startEngine();
    await accept(action("retry", "unknown"));
    await idle();
    expect(texts()).toEqual([expect.stringContaining("too old")]);
  });
});

describe("an edit", () => {
  test("that makes a message one to the bot has it answered, once and only where it was not", async () => {
    const { accept, idle, texts, requests } = startEngine({ scripts: [["Soup."], ["Tea."]] });
    const open = message("Soup or salad?", { addressed: "open" });
    await accept(open);
    await idle();
    expect(requests).toHaveLength(0);
    const asked = { ...edited(open, "Bot, soup or salad?"), addressed: "bot" as const };
    await accept(asked);
    await accept(asked);
    await idle();
    expect(texts()).toEqual(["Soup."]);
    expect(requests[0]?.messages.at(-1)?.content).toBe("Bot, soup or salad?");
    await accept({ ...edited(open, "Bot, and now?"), addressed: "bot" });
    await idle();
    expect(texts()).toEqual(["Soup."]);
    await accept(message("And to drink?", { addressed: "open" }));
    await idle();
    expect(texts()).toEqual(["Soup.", "Tea."]);
  });

  test("of the message that is being answered begins the answer again in the same message", async () => {
    const { accept, idle, texts, channel, until, requests, violations } = startEngine({
      scripts: [["Wrong", held().promise], ["Right"]],
    });
    const question = message("Helo");
    await accept(question);
    await until(() => channel.length === 1);
    await accept(edited(question, "Hello"));
    await idle();
    expect(texts()).toEqual(["Right"]);
    expect(requests[1]?.messages.at(-1)?.content).toBe("Hello");
    expect(violations).toEqual([]);
  });

  test("that comes while the end of the answer is being written still begins it again", async () => {
    const [rest, slow] = [held(), held()];
    const { accept, idle, texts, channel, setTrouble, until, calls, openStreams } = startEngine({
      scripts: [["Wrong", rest.promise], ["Right"]],
    });
    setTrouble((call) => (call === "edit" ? slow.promise : undefined));
    const question = message("Helo");
    await accept(question);
    await until(() => channel.length === 1);
    rest.resolve();
    while (!calls.includes("edit") || openStreams() > 0) await new Promise(setImmediate);
    await accept(edited(question, "Hello"));
    slow.resolve();
    await idle();
    expect(texts()).toEqual(["Right"]);
  });

  test("that changes nothing leaves the answer alone", async () => {
    const hold = held();
    const { accept, idle, channel, until, requests } = startEngine({ scripts: [["So far", hold.promise]] });
    const question = message("Hello");
    await accept(question);
    await until(() => channel.length === 1);
    await accept(edited(question, "Hello"));
    hold.resolve();
    await idle();
    expect(requests).toHaveLength(1);
  });

  test("of an answered message is what the model reads next time", async () => {
    const { accept, idle, requests } = startEngine();
    const question = message("I like tea");
    await accept(question);
    await idle();
    await accept(edited(question, "I like coffee"));
    await accept(message("What do I like?"));
    await idle();
    expect(requests[1]?.messages[1]?.content).toBe("I like coffee");
  });
});

describe("a deletion", () => {
  test("of the message that is being answered cancels the answer and takes it back", async () => {
    const { accept, idle, texts, channel, until, openStreams, history } = startEngine({
      scripts: [["So far", held().promise]],
    });
    const question = message("Hello");
    await accept(question);
    await until(() => channel.length === 1);
    await accept(deleted(question));
    await idle();
    expect(texts()).toEqual([]);
    expect(openStreams()).toBe(0);
    expect((await history.read("test:a", { maxEntries: 10 })).entries).toEqual([]);
  });

  test("of a message that still waits means that it is never answered", async () => {
    const hold = held();
    const { accept, idle, texts } = startEngine({ scripts: [[hold.promise, "first"], ["second"]] });
    await accept(message("one"));
    const unwanted = message("two", { author: ben });
    await accept(unwanted);
    await accept(deleted(unwanted));
    hold.resolve();
    await idle();
    expect(texts()).toEqual(["first"]);
  });

  test("takes back also what was posted although that seemed to fail", async () => {
    const refused = held();
    const { accept, idle, channel, setTrouble } = startEngine({ scripts: [["So far", held().promise]] });
    let first = true;
    setTrouble((call) => {
      if (call !== "post" || !first) return undefined;
      first = false;
      refused.resolve();
      return { kind: "unavailable", written: true };
    });
    const question = message("Hello");
    await accept(question);
    await refused.promise;
    await new Promise(setImmediate);
    await accept(deleted(question));
    await idle();
    expect(channel).toEqual([]);
  });

  test("is tried again until the platform takes the answer back", async () => {
    const { accept, idle, texts, channel, until, setTrouble } = startEngine({ scripts: [["So far", held().promise]] });
    const question = message("Hello");
    await accept(question);
    await until(() => channel.length === 1);
    let failures = 3;
    setTrouble((call) => (call === "remove" && failures-- > 0 ? { kind: "unavailable" } : undefined));
    await accept(deleted(question));
    await idle();
    expect(texts()).toEqual([]);
  });

  test("of one of several messages answered together begins the answer again without it", async () => {
    const hold = held();
    const { accept, idle, texts, channel, until, requests } = startEngine({
      scripts: [[hold.promise, "first"], ["both", held().promise], ["one"]],
    });
    await accept(message("zero"));
    const [kept, unwanted] = [message("kept"), message("unwanted")];
    await accept(kept);
    await accept(unwanted);
    hold.resolve();
    await until(() => channel.length === 2);
    await accept(deleted(unwanted));
    await idle();
    expect(texts()).toEqual(["first", "one"]);
    expect(requests[2]?.messages.at(-1)?.content).toBe("kept");
  });

  test("of the reply by a person ends the answer: nothing is posted again", async () => {
    const hold = held();
    const { accept, idle, channel, until, calls, openStreams } = startEngine({
      scripts: [["So far", hold.promise, " and more", held().promise]],
    });
    await accept(message("Hello"));
    await until(() => channel.length === 1);
    channel.splice(0);
    hold.resolve();
    await idle();
    expect(openStreams()).toBe(0);
    expect(calls.filter((name) => name === "post")).toHaveLength(1);
    expect(channel).toEqual([]);
  });
});

describe("a command", () => {
  test("is answered, and an unknown one with the list of those there are", async () => {
    const { accept, idle, texts } = startEngine();
    await accept(command("help"));
    await accept(command("dance"));
    await idle();
    expect(texts()[0]).toContain("/quiet");
    expect(texts()[1]).toContain("/help");
  });

  test("in a place that no longer takes messages is done with", async () => {
    const { accept, idle, setTrouble, queue } = startEngine();
    setTrouble(() => ({ kind: "gone" }));
    await accept(command("help"));
    await idle();
    expect(queue.depth().waiting).toBe(0);
  });

  test("/forget ends the answers to that person everywhere, keeps nothing of them, and answers nothing more", async () => {
    const database = new DatabaseSync(":memory:");
    const { accept, idle, channel, until, texts, requests, openStreams } = startEngine({
      database,
      scripts: [["To Ben"], ["A secret", held().promise]],
    });
    await accept(message("Hello", { author: ben, conversationId: "test:ben" }));
    await until(() => channel.length === 1);
    await accept(message("my secret", { conversationId: "test:b" }));
    await until(() => channel.length === 2);
    await accept(message("another secret", { conversationId: "test:b" }));
    await accept(command("forget", "me for good"));
    await idle();
    expect(texts()).toEqual(["To Ben", expect.stringContaining("Erased")]);
    expect(openStreams()).toBe(0);
    expect(requests).toHaveLength(2);
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    const rows = tables.flatMap(({ name }) => database.prepare(`SELECT * FROM "${String(name)}"`).all());
    expect(JSON.stringify(rows)).not.toMatch(/secret|ada/i);
  });

  test("/forget that a process did not live to finish is carried out by the next one", async () => {
    const database = new DatabaseSync(":memory:");
    const first = startEngine({ database });
    const asked = command("forget", "me for good");
    first.history.forgetAuthor = () => new Promise(() => {});
    await first.accept(message("my secret"));
    await first.idle();
    await first.accept(asked);
    const second = startEngine({ database });
    await second.idle();
    expect(second.texts()).toEqual([expect.stringContaining("Erased")]);
    expect((await second.history.read("test:a", { maxEntries: 10 })).entries).toEqual([]);
  });

  test("/quiet keeps the bot silent until it is addressed", async () => {
    const { accept, idle, texts } = startEngine();
    await accept(message("Hello"));
    await accept(command("quiet"));
    await accept(message("Anybody?", { addressed: "open" }));
    await idle();
    expect(texts()).toHaveLength(2);
  });
});

describe("a process that dies", () => {
  test("in the middle of an answer is followed by one that completes it in the same message", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [["So f", held().promise]] });
    await first.accept(message("Hello"));
    await platform.until(() => platform.channel.length === 1);
    const second = startEngine({ database, platform, scripts: [["So far, so good."]] });
    await second.idle();
    expect(platform.texts()).toEqual(["So far, so good."]);
    expect(platform.channel[0]?.draft).toMatchObject({ streaming: false, buttons: [] });
  });

  test("between a post and its record makes no second message", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [["So f", held().promise]] });
    const question = message("Hello");
    await first.accept(question);
    await platform.until(() => platform.channel.length === 1);
    await first.records.forget("test", question.author.id);
    const second = startEngine({ database, platform, scripts: [["So far, so good."]] });
    await second.idle();
    expect(platform.texts()).toEqual(["So far, so good."]);
  });

  test("between the end of an answer and the end of its event does not ask again", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform });
    const question = message("Hello");
    await first.accept(question);
    await first.idle();
    database.prepare("UPDATE queue_event SET event = ? WHERE key = ?").run(JSON.stringify(question), question.key);
    const second = startEngine({ database, platform });
    await second.idle();
    expect(second.requests).toHaveLength(0);
    expect(platform.texts()).toEqual(["Hello."]);
  });

  test("between the end of an answer and the end of its event still answers what came after it", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [["First."]] });
    const [question, next] = [message("one"), message("two")];
    await first.accept(question);
    await first.idle();
    database.prepare("UPDATE queue_event SET event = ? WHERE key = ?").run(JSON.stringify(question), question.key);
    openEventTable(database).claim(next);
    const second = startEngine({ database, platform, scripts: [["Second."]] });
    await second.idle();
    expect(platform.texts()).toEqual(["First.", "Second."]);
  });

  test("is followed by one that answers what was begun as it was begun, and what came later after it", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [["So f", held().promise]] });
    await first.accept(message("one"));
    await platform.until(() => platform.channel.length === 1);
    const later = message("two");
    await first.accept(later);
    const second = startEngine({ database, platform, scripts: [["First."], ["Second."]] });
    await second.accept(edited(later, "two, changed"));
    await second.idle();
    expect(platform.texts()).toEqual(["First.", "Second."]);
    expect(second.requests[1]?.messages.at(-1)?.content).toBe("two, changed");
  });

  test("after a person pressed Stop is followed by one that stops", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [["So f", held().promise]] });
    const question = message("Hello");
    await first.accept(question);
    await platform.until(() => platform.channel.length === 1);
    // Claimed by a process that died before it could act.
    openEventTable(database).claim(action("stop", toTurnId(question.key)));
    const second = startEngine({ database, platform });
    await second.idle();
    expect(second.requests).toHaveLength(0);
    expect(platform.channel[0]?.draft).toMatchObject({
      streaming: false,
      markdown: expect.stringContaining("Stopped"),
    });
  });

  test("after one of several questions was deleted is followed by one that no longer knows it", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const hold = held();
    const first = startEngine({
      database,
      platform,
      scripts: [
        [hold.promise, "zero"],
        ["both", held().promise],
      ],
    });
    await first.accept(message("zero"));
    const [kept, unwanted] = [message("kept"), message("unwanted")];
    await first.accept(kept);
    await first.accept(unwanted);
    hold.resolve();
    await platform.until(() => platform.channel.length === 2);
    openEventTable(database).claim(deleted(unwanted));
    const second = startEngine({ database, platform, scripts: [["one"]] });
    await second.idle();
    expect(platform.texts()).toEqual(["zero", "one"]);
    expect(second.requests[0]?.messages.at(-1)?.content).toBe("kept");
  });

  test("between a post and its record never leaves the text of before", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform({ maxLength: 200 })];
    const first = startEngine({ database, platform, scripts: [["So f", held().promise]] });
    const question = message("Hello");
    await first.accept(question);
    await platform.until(() => platform.channel.length === 1);
    const record = await first.records.load(toTurnId(question.key));
    if (record === undefined) throw new Error("a turn that runs has a record");
    await first.records.save({ ...record, posted: [], phase: "received" });
    const words = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
    const second = startEngine({ database, platform, scripts: [[words]] });
    await second.idle();
    expect(platform.texts().join(" ")).toBe(words);
    expect(platform.channel.every(({ draft }) => !draft.streaming)).toBe(true);
  });

  test("answers afterwards what had been accepted and not begun", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const first = startEngine({ database, platform, scripts: [[held().promise]] });
    await first.accept(message("one"));
    await first.accept(message("two", { author: ben }));
    const second = startEngine({ database, platform, scripts: [["first"], ["second"]] });
    await second.idle();
    expect(platform.texts()).toEqual(["first", "second"]);
  });
});

describe("a conversation longer than the window", () => {
  test("says in one line that older messages were left out", async () => {
    const { accept, idle, texts, requests } = startEngine({ maxEntries: 3 });
    for (const text of ["one", "two", "three"]) {
      await accept(message(text));
      await idle();
    }
    expect(texts()[0]).toBe("Hello.");
    expect(texts()[2]).toMatch(/^Hello\.\n\n_Earlier messages.*_$/);
    expect(requests[2]?.messages.length).toBeLessThan(6);
  });
});

describe("the log", () => {
  test("tells of a turn without a word of what was said", async () => {
    const { log, lines } = recordingLog();
    const { accept, idle } = startEngine({ scripts: [["canary in the answer"]], log });
    await accept(message("canary in the question"));
    await idle();
    expect(lines.some(({ msg }) => msg === "turn ended")).toBe(true);
    expect(JSON.stringify(lines)).not.toContain("canary");
  });
});

describe("work on which the process dies each time", () => {
  const never = new Promise<never>(() => {});

  /** Starts, lets the work begin, and "dies" in it: nothing is closed, and nothing of it says another word. */
  async function dieOn(event: InboundEvent, deaths: number) {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    for (let death = 0; death < deaths; death++) {
      const begun = held();
      const gateway = {
        streamChat: () => {
          begun.resolve();
          return never;
        },
        generateImage: () => {
          begun.resolve();
          return never;
        },
        listModels: () => never,
        close: async () => {},
      };
      const { accept } = startEngine({ database, platform, gateway, imageModel: "painter" });
      if (death === 0) await accept(event);
      await begun.promise;
    }
    const { idle, requests } = startEngine({ database, platform, imageModel: "painter", scripts: [["At last."]] });
    await idle();
    return { ...platform, requests };
  }

  test("is taken up five times: a question", async () => {
    const { texts, requests } = await dieOn(message("Deadly?"), 5);
    expect(texts()).toEqual(["At last."]);
    expect(requests).toHaveLength(1);
  });

  test("ends in one sentence after that, with Retry: a question", async () => {
    const { channel, requests } = await dieOn(message("Deadly?"), 6);
    expect(channel).toHaveLength(1);
    expect(channel[0]?.draft).toMatchObject({ streaming: false, buttons: [{ action: "retry" }] });
    expect(channel[0]?.draft.markdown).toContain("Given up");
    expect(requests).toEqual([]);
  });

  test("ends in one sentence after that: a picture", async () => {
    const { channel } = await dieOn(command("imagine", "a fox"), 6);
    expect(channel).toHaveLength(1);
    expect(channel[0]?.draft.markdown).toContain("Given up");
  });
});

describe("while the store takes nothing", () => {
  test("whoever gave a command is told once that it waits, and it is carried out when the store is back", async () => {
    const storeDatabase = new DatabaseSync(":memory:");
    const { log, lines } = recordingLog();
    const { accept, idle, texts, until } = startEngine({ storeDatabase, log });
    await accept(message("Hello"));
    await idle();
    storeDatabase.exec("PRAGMA query_only = ON");
    await accept(command("quiet"));
    await until(() => texts().length === 2);
    while (lines.filter(({ msg }) => String(msg).includes("tried again")).length < 3) await new Promise(setImmediate);
    expect(texts()).toEqual(["Hello.", expect.stringContaining("as soon as it is back")]);
    storeDatabase.exec("PRAGMA query_only = OFF");
    await idle();
    expect(texts()).toHaveLength(3);
    expect(texts()[2]).toContain("I stay silent here");
  });
});
