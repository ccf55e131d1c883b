import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { isOnRedis } from "../../lab/support/bot-store.ts";
import { startEngine } from "../../lab/support/engine.ts";
import { action, ben, command, message } from "../../lab/support/events.ts";
import { recordingLog } from "../../lab/support/log.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { eventually } from "../support/eventually.ts";

const held = () => Promise.withResolvers<void>();

describe("a message", () => {
  test("the bot answers a message once, and sends the model the conversation up to that message", async () => {
    const { handle, texts, requests, violations } = startEngine({ scripts: [["Hello ", "Ada."], ["Ada."]] });
    await handle(message("I am Ada."));
    await handle(message("Who am I?"));
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

  test("the bot answers waiting messages of one author together", async () => {
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

  test("the bot answers a message without a mention only in a conversation that the bot follows", async () => {
    const { accept, handle, texts } = startEngine();
    await handle(message("Lunch?", { addressed: "open" }));
    expect(texts()).toEqual([]);
    await accept(message("Bot, hello"));
    await handle(message("And you?", { addressed: "open", author: ben }));
    expect(texts()).toHaveLength(2);
    await accept(message("@Ben what do you think?", { addressed: "other" }));
    await handle(message("Nothing", { addressed: "open", author: ben }));
    expect(texts()).toHaveLength(2);
  });

  test("the bot does not answer a message that is older than the question but arrives later", async () => {
    const { accept, handle, texts } = startEngine();
    const before = message("I like soup.", { addressed: "open", author: ben });
    await accept(message("Bot, decide"));
    await handle(before);
    expect(texts()).toHaveLength(1);
    await handle(message("And then?", { addressed: "open", author: ben }));
    expect(texts()).toHaveLength(2);
  });
});

describe("the end of an answer", () => {
  test.each([[[]], [[" \n"]], [["\0\u202E"]]])(
    "an answer without visible text becomes one plain sentence",
    async (script) => {
      const { handle, texts } = startEngine({ scripts: [script] });
      await handle(message("Hello"));
      expect(texts()).toEqual([expect.stringContaining("empty answer")]);
    },
  );

  test("an answer that ends leaves no progress indicator behind", async () => {
    const { handle, progress } = startEngine({ scripts: [[new GatewayError("unreachable", "refused")]] });
    await handle(message("Hello"));
    expect(progress.at(-1)).toBe("");
  });
});

describe("a question that the gateway refuses", () => {
  test("later requests leave out a question that the gateway refused, and Retry still asks that question", async () => {
    const refusal = new GatewayError("rejected", "no", { status: 400, reason: "filtered" });
    const { handle, requests } = startEngine({ scripts: [["Hello."], [refusal], ["Fine."], ["After all."]] });
    const question = message("something forbidden");
    for (const event of [message("Good morning"), question, message("something harmless")]) await handle(event);
    expect(requests[2]?.messages.map(({ content }) => content)).toEqual([
      "Be kind.",
      "Good morning",
      "Hello.",
      "something harmless",
    ]);
    await handle(action("retry", toTurnId(question.key)));
    expect(requests[3]?.messages.at(-1)?.content).toBe("something forbidden");
  });

  test("the bot keeps a question in later requests if the gateway was only unreachable", async () => {
    const { handle, requests } = startEngine({ scripts: [[new GatewayError("unreachable", "no")], ["Fine."]] });
    await handle(message("What is the tide?"));
    await handle(message("Well?"));
    expect(requests[1]?.messages.at(-1)?.content).toBe("What is the tide?\n\nWell?");
  });
});

describe("a command", () => {
  test("the bot answers a command, and answers an unknown command with the list of commands", async () => {
    const { accept, handle, texts } = startEngine();
    await accept(command("help"));
    await handle(command("dance"));
    expect(texts()[0]).toContain("/quiet");
    expect(texts()[1]).toContain("/help");
  });

  test("a command counts as done if its channel no longer accepts messages", async () => {
    const { handle, setTrouble, queue } = startEngine();
    setTrouble(() => ({ kind: "gone" }));
    await handle(command("help"));
    await eventually(() => queue.depth().waiting).toBe(0);
  });

  test("/forget stops the person's answers everywhere, erases all their data, and answers nothing more", async () => {
    const database = new DatabaseSync(":memory:");
    const { accept, handle, channel, until, texts, requests, openStreams } = startEngine({
      database,
      scripts: [["To Ben"], ["A secret", held().promise]],
    });
    await accept(message("Hello", { author: ben, conversationId: "test:ben" }));
    await until(() => channel.length === 1);
    await accept(message("my secret", { conversationId: "test:b" }));
    await until(() => channel.length === 2);
    await accept(message("another secret", { conversationId: "test:b" }));
    await handle(command("forget", "me for good"));
    expect(texts()).toEqual(["To Ben", expect.stringContaining("Erased")]);
    expect(openStreams()).toBe(0);
    expect(requests).toHaveLength(2);
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    const rows = tables.flatMap(({ name }) => database.prepare(`SELECT * FROM "${String(name)}"`).all());
    expect(JSON.stringify(rows)).not.toMatch(/secret|\bada\b/i);
  });

  test.skipIf(isOnRedis)("the next process finishes a /forget that a crash interrupted", async () => {
    const database = new DatabaseSync(":memory:");
    const first = startEngine({ database });
    const asked = command("forget", "me for good");
    first.history.forgetAuthor = () => new Promise(() => {});
    await first.handle(message("my secret"));
    await first.accept(asked);
    const second = startEngine({ database });
    await second.idle();
    expect(second.texts()).toEqual([expect.stringContaining("Erased")]);
    expect((await second.history.read("test:a", { maxEntries: 10 })).entries).toEqual([]);
  });

  test("/quiet keeps the bot silent until someone mentions it", async () => {
    const { accept, handle, texts } = startEngine();
    await accept(message("Hello"));
    await accept(command("quiet"));
    await handle(message("Anybody?", { addressed: "open" }));
    expect(texts()).toHaveLength(2);
  });
});

describe("a conversation longer than the window", () => {
  test("an answer says in one line that older messages were left out", async () => {
    const { handle, texts, requests } = startEngine({ maxEntries: 3 });
    for (const text of ["one", "two", "three"]) {
      await handle(message(text));
    }
    expect(texts()[0]).toBe("Hello.");
    expect(texts()[2]).toMatch(/^Hello\.\n\n_Earlier messages.*_$/);
    expect(requests[2]?.messages.length).toBeLessThan(6);
  });
});

describe("the log", () => {
  test("the log describes a turn without a word of the conversation", async () => {
    const { log, lines } = recordingLog();
    const { handle } = startEngine({ scripts: [["canary in the answer"]], log });
    await handle(message("canary in the question"));
    expect(lines.some(({ msg }) => msg === "turn ended")).toBe(true);
    expect(JSON.stringify(lines)).not.toContain("canary");
  });
});

describe.skipIf(isOnRedis)("an unavailable store", () => {
  test("the author of a command gets one notice while the store is unavailable, and the command runs once it is back", async () => {
    const storeDatabase = new DatabaseSync(":memory:");
    const { log, lines } = recordingLog();
    const { accept, handle, idle, texts, until } = startEngine({ storeDatabase, log });
    await handle(message("Hello"));
    storeDatabase.exec("PRAGMA query_only = ON");
    await accept(command("quiet"));
    await until(() => texts().length === 2);
    while (lines.filter(({ msg }) => String(msg).includes("will be retried")).length < 3)
      await new Promise(setImmediate);
    expect(texts()).toEqual(["Hello.", expect.stringContaining("as soon as it's back")]);
    storeDatabase.exec("PRAGMA query_only = OFF");
    await idle();
    expect(texts()).toHaveLength(3);
    expect(texts()[2]).toContain("I'll stay silent here");
  });

  test("the author of a typed command that the bot cannot store gets one notice; the author of a question gets none", async () => {
    const database = new DatabaseSync(":memory:");
    const { accept, handle, texts, until } = startEngine({ database, storeDatabase: new DatabaseSync(":memory:") });
    database.exec("PRAGMA query_only = ON");
    const [said, asked] = [message("!quiet"), message("What is tea?")];
    await expect(accept(asked)).rejects.toThrow();
    await expect(accept(said)).rejects.toThrow();
    await until(() => texts().length === 1);
    expect(texts()).toEqual([expect.stringContaining("if it's back within a few minutes")]);
    await expect(accept(said)).rejects.toThrow();
    database.exec("PRAGMA query_only = OFF");
    await handle(said);
    expect(texts()).toEqual([expect.anything(), expect.stringContaining("I'll stay silent here")]);
  });
});
