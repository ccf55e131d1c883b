import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { GatewayError } from "../../src/gateway/errors.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { isOnRedis } from "../support/bot-store.ts";
import { startEngine } from "../support/engine.ts";
import { action, ben, command, message } from "../support/events.ts";
import { eventually } from "../support/eventually.ts";
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
    await eventually(() => requests.length).toBe(1);
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
    const refusal = new GatewayError("rejected", "no", { status: 400, reason: "filtered" });
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

describe("a command", () => {
  test("is answered, and an unknown one with the list of those there are", async () => {
    const { accept, idle, texts } = startEngine();
    await accept(command("help"));
    await accept(command("dance"));
    await idle();
    expect(texts()[0]).toContain("/quiet");
    expect(texts()[1]).toContain("/help");
  });

  test("in a place that no longer takes messages counts as done", async () => {
    const { accept, idle, setTrouble, queue } = startEngine();
    setTrouble(() => ({ kind: "gone" }));
    await accept(command("help"));
    await idle();
    await eventually(() => queue.depth().waiting).toBe(0);
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
    expect(JSON.stringify(rows)).not.toMatch(/secret|\bada\b/i);
  });

  test.skipIf(isOnRedis)("/forget that a process did not live to finish is carried out by the next one", async () => {
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
  test("describes a turn without a word of the conversation", async () => {
    const { log, lines } = recordingLog();
    const { accept, idle } = startEngine({ scripts: [["canary in the answer"]], log });
    await accept(message("canary in the question"));
    await idle();
    expect(lines.some(({ msg }) => msg === "turn ended")).toBe(true);
    expect(JSON.stringify(lines)).not.toContain("canary");
  });
});

describe.skipIf(isOnRedis)("while the store takes nothing", () => {
  test("the person who gave a command is told once that it waits, and it is carried out when the store is back", async () => {
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

  test("whoever says a command in a message while it cannot be stored is told once that it waits, a question is not", async () => {
    const database = new DatabaseSync(":memory:");
    const { accept, idle, texts, until } = startEngine({ database, storeDatabase: new DatabaseSync(":memory:") });
    database.exec("PRAGMA query_only = ON");
    const [said, asked] = [message("!quiet"), message("What is tea?")];
    await expect(accept(asked)).rejects.toThrow();
    await expect(accept(said)).rejects.toThrow();
    await until(() => texts().length === 1);
    expect(texts()).toEqual([expect.stringContaining("when it is back within a few minutes")]);
    await expect(accept(said)).rejects.toThrow();
    database.exec("PRAGMA query_only = OFF");
    await accept(said);
    await idle();
    expect(texts()).toEqual([expect.anything(), expect.stringContaining("I stay silent here")]);
  });
});
