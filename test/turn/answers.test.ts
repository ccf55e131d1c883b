import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { GatewayError } from "../../src/gateway/errors.ts";
import type { EarlierMessage } from "../../src/port/events.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { toContinuationEvent } from "../../src/turn/answers.ts";
import { newRecord } from "../../src/turn/record.ts";
import { isOnRedis } from "../support/bot-store.ts";
import { startEngine } from "../support/engine.ts";
import { action, ada, ben, command, deleted, edited, message } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";

const held = () => Promise.withResolvers<void>();

type Engine = ReturnType<typeof startEngine>;

/** What the model was shown in a request, without the system prompt. */
function shown({ requests }: Engine, index: number): string[] {
  return (requests[index]?.messages ?? [])
    .slice(1)
    .map(({ content }) => (typeof content === "string" ? content : JSON.stringify(content)));
}

/** The newest message of the bot. */
function lastPost({ channel }: Engine): string {
  const id = channel.at(-1)?.id;
  if (id === undefined) throw new Error("the bot has said nothing");
  return id;
}

describe("replies to one message by two people at once", () => {
  test("are two branches, each answered by itself and continued by itself", async () => {
    const hold = held();
    const engine = startEngine({ scripts: [["Root."], [hold.promise, "To Ada."], ["To Ben."], ["Ada again."]] });
    const { accept, idle, until, channel } = engine;
    await accept(message("Begin"));
    await idle();
    const root = lastPost(engine);
    await accept(message("Ada's turn", { inReplyTo: root }));
    await accept(message("Ben's turn", { inReplyTo: root, author: ben }));
    hold.resolve();
    await idle();
    await until(() => channel.length === 3);
    expect(shown(engine, 1)).toEqual(["Begin", "Root.", "Ada's turn"]);
    expect(shown(engine, 2)).toEqual(["Ada: Begin", "Root.", "Ben: Ben's turn"]);
    await accept(message("And then?", { inReplyTo: channel[1]?.id ?? "" }));
    await idle();
    expect(shown(engine, 3)).toEqual(["Begin", "Root.", "Ada's turn", "To Ada.", "And then?"]);
  });

  test("go on where a message in the middle of the branch was deleted", async () => {
    const engine = startEngine({ scripts: [["Root."], ["First."], ["Second."], ["Third."]] });
    const { accept, idle } = engine;
    await accept(message("Begin"));
    await idle();
    const root = lastPost(engine);
    await accept(message("another branch", { inReplyTo: root, author: ben }));
    await idle();
    const unwanted = message("unwanted", { inReplyTo: root });
    await accept(unwanted);
    await idle();
    const second = lastPost(engine);
    await accept(deleted(unwanted));
    await accept(message("Well?", { inReplyTo: second }));
    await idle();
    expect(shown(engine, 3)).toEqual(["Begin", "Root.\n\nSecond.", "Well?"]);
  });

  test("are edited and asked again where they are", async () => {
    const cut = new GatewayError("overloaded", "busy");
    const engine = startEngine({ scripts: [["Root."], [cut], ["To Ben."], ["At last."], ["More."]] });
    const { accept, idle, texts } = engine;
    await accept(message("Begin"));
    await idle();
    const root = lastPost(engine);
    const question = message("Helo", { inReplyTo: root });
    await accept(question);
    await idle();
    await accept(message("Ben's turn", { inReplyTo: root, author: ben }));
    await idle();
    await accept(edited(question, "Hello"));
    await idle();
    expect(texts()[1]).toBe("At last.");
    expect(shown(engine, 3)).toEqual(["Begin", "Root.", "Hello"]);
  });

  test("of one person that wait together are answered together where they continue the same message", async () => {
    const hold = held();
    const engine = startEngine({ scripts: [["Root."], ["Other."], [hold.promise, "busy"], ["Both."], ["Apart."]] });
    const { accept, idle } = engine;
    await accept(message("Begin"));
    await idle();
    const root = lastPost(engine);
    await accept(message("Another branch", { inReplyTo: root, author: ben }));
    await idle();
    const other = lastPost(engine);
    await accept(message("Wait", { inReplyTo: root, author: ben }));
    await accept(message("one", { inReplyTo: root }));
    await accept(message("two", { inReplyTo: root }));
    await accept(message("three", { inReplyTo: other }));
    hold.resolve();
    await idle();
    expect(shown(engine, 3)).toEqual(["Begin", "Root.", "one\n\ntwo"]);
    expect(shown(engine, 4)).toEqual(["Ada: Begin", "Root.", "Ben: Another branch", "Other.", "Ada: three"]);
  });
});

describe("an answer", () => {
  test("follows its question, also when something else was stored meanwhile", async () => {
    const hold = held();
    const engine = startEngine({ scripts: [["So far", hold.promise, ", so good."], ["Yes."]] });
    const { accept, idle, until, channel, history } = engine;
    await accept(message("Begin"));
    await until(() => channel.length === 1);
    await history.append("test:a", { id: "picture", at: 0, messages: [{ role: "assistant", content: "A picture." }] });
    hold.resolve();
    await idle();
    await accept(message("And then?", { inReplyTo: lastPost(engine) }));
    await idle();
    expect(shown(engine, 1)).toEqual(["Begin", "So far, so good.", "And then?"]);
  });
});

describe("an answer that goes on where it was cut off", () => {
  test("knows nothing of what was said since, and what is said next knows all of it", async () => {
    const engine = startEngine({
      scripts: [["The first half", { finish: "length" }], ["About tea."], ["and the second."], ["Yes."]],
    });
    const { accept, idle } = engine;
    const question = message("Tell me everything");
    await accept(question);
    await idle();
    await accept(message("And tea?"));
    await idle();
    await accept(action("continue", toTurnId(question.key)));
    await idle();
    const [asked, half, goOn] = ["Tell me everything", "The first half", "Go on exactly where you stopped."];
    expect(shown(engine, 2)).toEqual([asked, half, goOn]);
    await accept(message("Is that all?"));
    await idle();
    expect(shown(engine, 3)).toEqual([asked, half, "And tea?", "About tea.", goOn, "and the second.", "Is that all?"]);
  });
});

describe("earlier talk before the bot was asked", () => {
  const before = (text: string, author = ben): EarlierMessage => {
    const { messageId, at } = message(text);
    return { messageId, author, text, attachments: [], at };
  };

  /** A place where people have spoken already; `reads` counts how often somebody looked. */
  function place(...said: EarlierMessage[]) {
    const platform = fakePlatform();
    let reads = 0;
    platform.adapter.readEarlier = async (_, { since }) => {
      reads += 1;
      return { messages: said.filter(({ at }) => at > (since ?? 0)) };
    };
    return { platform, reads: () => reads };
  }

  test("is shown once, as quotes of those who said it, apart from the question", async () => {
    const { platform } = place(before("Shall we eat?"), before("At noon\n> then", ada));
    const engine = startEngine({ platform });
    const { accept, idle } = engine;
    await accept(message("Which of us is hungry?"));
    await idle();
    await accept(message("And now?"));
    await idle();
    expect(shown(engine, 0)).toEqual([
      expect.stringMatching(
        /before you were asked[\s\S]*Ben wrote:\n> Shall we eat\?\n\nAda wrote:\n> At noon\n> > then$/,
      ),
      "Ada: Which of us is hungry?",
    ]);
    expect(shown(engine, 1).slice(0, 2)).toEqual(shown(engine, 0));
  });

  test("can be changed and taken back by those who said it", async () => {
    const unwanted = before("unwanted");
    const wrong = before("wrong");
    const { platform } = place(unwanted, wrong, before("my secret", { id: "cleo", name: "Cleo" }));
    const engine = startEngine({ platform });
    const { accept, idle } = engine;
    await accept(message("Hello"));
    await idle();
    await accept(deleted(message("", { messageId: unwanted.messageId })));
    await accept(edited(message("", { messageId: wrong.messageId, author: ben }), "right"));
    await accept(
      command("forget", "me for good", { author: { id: "cleo", name: "Cleo" }, conversationId: "test:elsewhere" }),
    );
    await idle();
    await accept(message("Well?"));
    await idle();
    expect(shown(engine, 1).join("\n")).toContain("> right");
    expect(shown(engine, 1).join("\n")).not.toMatch(/unwanted|wrong|secret|Cleo/);
  });

  test.skipIf(isOnRedis)("is there for the turn that is taken up after a crash, and not read again", async () => {
    const { platform, reads } = place(before("Shall we eat?"));
    const database = new DatabaseSync(":memory:");
    const first = startEngine({ database, platform, scripts: [["So f", held().promise]] });
    await first.accept(message("Which of us is hungry?"));
    await platform.until(() => platform.channel.length === 1);
    const second = startEngine({ database, platform });
    await second.idle();
    expect(reads()).toBe(1);
    expect(shown(second, 0)[0]).toContain("> Shall we eat?");
  });

  test("is told to be a part where it is one", async () => {
    const platform = fakePlatform();
    platform.adapter.readEarlier = async () => ({ messages: [before("Shall we eat?")], isPartial: true });
    const { accept, idle, texts } = startEngine({ platform });
    await accept(message("Which of us is hungry?"));
    await idle();
    expect(texts()).toEqual(["Hello.\n\n_I could read only a part of what was said here before._"]);
  });

  test("includes talk to others, until the bot is asked about it", async () => {
    const engine = startEngine({ scripts: [["One."], ["Two."], ["Three."]] });
    const { accept, idle, history } = engine;
    await accept(message("Hello"));
    const toCleo = message("Cleo, lunch?", { addressed: "other", author: ben });
    const toNobody = message("Well?", { addressed: "open", author: ben });
    for (const event of [toCleo, toNobody]) {
      await idle();
      await accept(event);
    }
    await idle();
    await accept(message("And now?"));
    await idle();
    expect(shown(engine, 1).slice(2)).toEqual([
      expect.stringMatching(/Ben wrote:\n> Cleo, lunch\?\n\nBen wrote:\n> Well\?$/),
      "Ada: And now?",
    ]);
    const kept = await history.exportAuthor("test", "ben");
    expect(kept.conversations[0]?.entries.map(({ id }) => id)).toEqual([toCleo.messageId, toNobody.messageId]);
    await accept({ ...edited(toCleo, "Bot, lunch?"), addressed: "bot" });
    await idle();
    expect(shown(engine, 2).at(-1)).toBe("Ben: Bot, lunch?");
    expect(shown(engine, 2).join()).not.toContain("Cleo");
  });

  test("that cannot be read keeps no answer back, which says so", async () => {
    const platform = fakePlatform();
    platform.adapter.readEarlier = () => Promise.reject(new Error("missing_scope"));
    const engine = startEngine({ platform });
    await engine.accept(message("Hello"));
    await engine.idle();
    expect(engine.texts()).toEqual(["Hello.\n\n_I could not read what was said here before._"]);
    expect(shown(engine, 0)).toEqual(["Hello"]);
  });
});

describe("/forget conversation", () => {
  test("erases what the person said here, or all of it where they may settle things", async () => {
    const { accept, idle, history, records } = startEngine();
    const [mine, theirs] = [message("mine"), message("theirs", { author: ben })];
    for (const event of [mine, theirs]) {
      await accept(event);
      await idle();
    }
    await accept(command("forget", "conversation", { author: { ...ada, mayConfigure: false } }));
    await idle();
    const left = await history.read("test:a", { maxEntries: 10 });
    expect(left.entries.map(({ id }) => id)).toEqual([theirs.messageId, toTurnId(theirs.key)]);
    expect(await records.load(toTurnId(mine.key))).toBeUndefined();
    expect(await records.load(toTurnId(theirs.key))).toBeDefined();
    await accept(command("forget", "here", { author: { ...ada, mayConfigure: true } }));
    await idle();
    expect((await history.read("test:a", { maxEntries: 10 })).entries).toEqual([]);
  });

  test("erases what the adapter keeps of it too, up to the /forget itself, where there is a conversation", async () => {
    const platform = fakePlatform();
    const forgotten: unknown[][] = [];
    platform.adapter.forgetConversation = async (...which) => void forgotten.push(which);
    const { accept, idle } = startEngine({ platform });
    await accept(message("mine"));
    await idle();
    const mine = command("forget", "conversation", { author: { ...ada, mayConfigure: false } });
    const all = command("forget", "conversation");
    for (const event of [mine, all, command("forget", "here", { conversationId: "test:people" })]) await accept(event);
    await idle();
    expect(forgotten).toEqual([
      ["test:a", "ada", mine.at],
      ["test:a", undefined, all.at],
    ]);
  });
});

describe("the question that lets an answer go on", () => {
  test("is the same for the same press, and continues the end of that answer", () => {
    const asked = message("Tell me");
    const record = { ...newRecord([asked], [asked]), posted: ["test:p1", "test:p2"] };
    const press = action("continue", record.id, { conversationId: "test:elsewhere" });
    const question = toContinuationEvent(press, record);
    expect(question).toEqual(toContinuationEvent(press, record));
    expect(question).toMatchObject({ inReplyTo: "test:p2", conversationId: "test:a", addressed: "bot" });
  });
});
