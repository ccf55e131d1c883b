import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { isOnRedis } from "../../lab/support/bot-store.ts";
import { startEngine } from "../../lab/support/engine.ts";
import { action, ada, ben, command, deleted, edited, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import type { EarlierMessage } from "../../src/port/events.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { toContinuationEvent } from "../../src/turn/after-the-end.ts";
import { newRecord } from "../../src/turn/record.ts";

const held = () => Promise.withResolvers<void>();

type Engine = ReturnType<typeof startEngine>;

/** The messages of a request, without the system prompt. */
function shown({ requests }: Engine, index: number): string[] {
  return (requests[index]?.messages ?? [])
    .slice(1)
    .map(({ content }) => (typeof content === "string" ? content : JSON.stringify(content)));
}

/** The bot's newest message. */
function lastPost({ channel }: Engine): string {
  const id = channel.at(-1)?.id;
  if (id === undefined) throw new Error("the bot has said nothing");
  return id;
}

describe("replies to one message by two people at once", () => {
  test("two people's replies to one message become two branches with separate answers", async () => {
    const hold = held();
    const engine = startEngine({ scripts: [["Root."], [hold.promise, "To Ada."], ["To Ben."], ["Ada again."]] });
    const { accept, handle, idle, until, channel } = engine;
    await handle(message("Begin"));
    const root = lastPost(engine);
    await accept(message("Ada's turn", { inReplyTo: root }));
    await accept(message("Ben's turn", { inReplyTo: root, author: ben }));
    hold.resolve();
    await idle();
    await until(() => channel.length === 3);
    expect(shown(engine, 1)).toEqual(["Begin", "Root.", "Ada's turn"]);
    expect(shown(engine, 2)).toEqual(["Ada: Begin", "Root.", "Ben: Ben's turn"]);
    await handle(message("And then?", { inReplyTo: channel[1]?.id ?? "" }));
    expect(shown(engine, 3)).toEqual(["Begin", "Root.", "Ada's turn", "To Ada.", "And then?"]);
  });

  test("a reply continues the branch even if a message in its middle was deleted", async () => {
    const engine = startEngine({ scripts: [["Root."], ["First."], ["Second."], ["Third."]] });
    const { accept, handle } = engine;
    await handle(message("Begin"));
    const root = lastPost(engine);
    await handle(message("another branch", { inReplyTo: root, author: ben }));
    const unwanted = await handle(message("unwanted", { inReplyTo: root }));
    const second = lastPost(engine);
    await accept(deleted(unwanted));
    await handle(message("Well?", { inReplyTo: second }));
    expect(shown(engine, 3)).toEqual(["Begin", "Root.\n\nSecond.", "Well?"]);
  });

  test("the bot asks an edited reply again on its branch", async () => {
    const cut = new GatewayError("overloaded", "busy");
    const engine = startEngine({ scripts: [["Root."], [cut], ["To Ben."], ["At last."], ["More."]] });
    const { handle, texts } = engine;
    await handle(message("Begin"));
    const root = lastPost(engine);
    const question = await handle(message("Helo", { inReplyTo: root }));
    await handle(message("Ben's turn", { inReplyTo: root, author: ben }));
    await handle(edited(question, "Hello"));
    expect(texts()[1]).toBe("At last.");
    expect(shown(engine, 3)).toEqual(["Begin", "Root.", "Hello"]);
  });
});

describe("the position of an answer in the history", () => {
  test("an answer follows its question in the history even if something was stored in between", async () => {
    const hold = held();
    const engine = startEngine({ scripts: [["So far", hold.promise, ", so good."], ["Yes."]] });
    const { accept, handle, idle, until, channel, history } = engine;
    await accept(message("Begin"));
    await until(() => channel.length === 1);
    await history.append("test:a", { id: "picture", at: 0, messages: [{ role: "assistant", content: "A picture." }] });
    hold.resolve();
    await idle();
    await handle(message("And then?", { inReplyTo: lastPost(engine) }));
    expect(shown(engine, 1)).toEqual(["Begin", "So far, so good.", "And then?"]);
  });
});

describe("a truncated answer that is continued", () => {
  test("a continuation does not see later messages, and the next question sees everything", async () => {
    const engine = startEngine({
      scripts: [["The first half", { finish: "length" }], ["About tea."], ["and the second."], ["Yes."]],
    });
    const { handle } = engine;
    const question = await handle(message("Tell me everything"));
    await handle(message("And tea?"));
    await handle(action("continue", toTurnId(question.key)));
    const [asked, half, goOn] = ["Tell me everything", "The first half", "Go on exactly where you stopped."];
    expect(shown(engine, 2)).toEqual([asked, half, goOn]);
    await handle(message("Is that all?"));
    expect(shown(engine, 3)).toEqual([asked, half, "And tea?", "About tea.", goOn, "and the second.", "Is that all?"]);
  });
});

describe("messages from before someone asked the bot", () => {
  const before = (text: string, author = ben): EarlierMessage => {
    const { messageId, at } = message(text);
    return { messageId, author, text, attachments: [], at };
  };

  /** A channel with earlier messages. `reads` counts how often they were read. */
  function place(...said: EarlierMessage[]) {
    const platform = fakePlatform();
    let reads = 0;
    platform.adapter.readEarlier = async (_, { since }) => {
      reads += 1;
      return { messages: said.filter(({ at }) => at > (since ?? 0)) };
    };
    return { platform, reads: () => reads };
  }

  test("the model sees earlier messages once, as quotes with their authors, separate from the question", async () => {
    const { platform } = place(before("Shall we eat?"), before("At noon\n> then", ada));
    const engine = startEngine({ platform });
    const { handle } = engine;
    await handle(message("Which of us is hungry?"));
    await handle(message("And now?"));
    expect(shown(engine, 0)).toEqual([
      expect.stringMatching(
        /before you were asked[\s\S]*Ben wrote:\n> Shall we eat\?\n\nAda wrote:\n> At noon\n> > then$/,
      ),
      "Ada: Which of us is hungry?",
    ]);
    expect(shown(engine, 1).slice(0, 2)).toEqual(shown(engine, 0));
  });

  test("authors can edit and delete earlier messages", async () => {
    const unwanted = before("unwanted");
    const wrong = before("wrong");
    const { platform } = place(unwanted, wrong, before("my secret", { id: "cleo", name: "Cleo" }));
    const engine = startEngine({ platform });
    const { accept, handle } = engine;
    await handle(message("Hello"));
    await accept(deleted(message("", { messageId: unwanted.messageId })));
    await accept(edited(message("", { messageId: wrong.messageId, author: ben }), "right"));
    await handle(
      command("forget", "me for good", { author: { id: "cleo", name: "Cleo" }, conversationId: "test:elsewhere" }),
    );
    await handle(message("Well?"));
    expect(shown(engine, 1).join("\n")).toContain("> right");
    expect(shown(engine, 1).join("\n")).not.toMatch(/unwanted|wrong|secret|Cleo/);
  });

  test.skipIf(isOnRedis)(
    "a turn that resumes after a crash still has the earlier messages and does not read them again",
    async () => {
      const { platform, reads } = place(before("Shall we eat?"));
      const database = new DatabaseSync(":memory:");
      const first = startEngine({ database, platform, scripts: [["So f", held().promise]] });
      await first.accept(message("Which of us is hungry?"));
      await platform.until(() => platform.channel.length === 1);
      const second = startEngine({ database, platform });
      await second.idle();
      expect(reads()).toBe(1);
      expect(shown(second, 0)[0]).toContain("> Shall we eat?");
    },
  );

  test("the model learns if only some of the earlier messages could be read", async () => {
    const platform = fakePlatform();
    platform.adapter.readEarlier = async () => ({ messages: [before("Shall we eat?")], isPartial: true });
    const { handle, texts } = startEngine({ platform });
    await handle(message("Which of us is hungry?"));
    expect(texts()).toEqual(["Hello.\n\n_I could read only some of the earlier messages here._"]);
  });

  test("the model sees a message to another person, until an edit turns the message into a question to the bot", async () => {
    const engine = startEngine({ scripts: [["One."], ["Two."], ["Three."]] });
    const { accept, handle, idle, history } = engine;
    await accept(message("Hello"));
    const toCleo = message("Cleo, lunch?", { addressed: "other", author: ben });
    const toNobody = message("Well?", { addressed: "open", author: ben });
    for (const event of [toCleo, toNobody]) {
      await idle();
      await accept(event);
    }
    await idle();
    await handle(message("And now?"));
    expect(shown(engine, 1).slice(2)).toEqual([
      expect.stringMatching(/Ben wrote:\n> Cleo, lunch\?\n\nBen wrote:\n> Well\?$/),
      "Ada: And now?",
    ]);
    const kept = await history.exportAuthor("test", "ben");
    expect(kept.conversations[0]?.entries.map(({ id }) => id)).toEqual([toCleo.messageId, toNobody.messageId]);
    await handle({ ...edited(toCleo, "Bot, lunch?"), addressed: "bot" });
    expect(shown(engine, 2).at(-1)).toBe("Ben: Bot, lunch?");
    expect(shown(engine, 2).join()).not.toContain("Cleo");
  });
});

describe("/forget conversation", () => {
  test("/forget conversation erases the person's messages here, or everything if the person manages the channel", async () => {
    const { handle, history, records } = startEngine();
    const [mine, theirs] = [message("mine"), message("theirs", { author: ben })];
    for (const event of [mine, theirs]) await handle(event);
    await handle(command("forget", "conversation", { author: { ...ada, mayConfigure: false } }));
    const left = await history.read("test:a", { maxEntries: 10 });
    expect(left.entries.map(({ id }) => id)).toEqual([theirs.messageId, toTurnId(theirs.key)]);
    expect(await records.load(toTurnId(mine.key))).toBeUndefined();
    expect(await records.load(toTurnId(theirs.key))).toBeDefined();
    await handle(command("forget", "here", { author: { ...ada, mayConfigure: true } }));
    expect((await history.read("test:a", { maxEntries: 10 })).entries).toEqual([]);
  });

  test("/forget conversation also erases the adapter's data about the conversation, up to the command itself", async () => {
    const platform = fakePlatform();
    const forgotten: unknown[][] = [];
    platform.adapter.forget = async (...which) => void forgotten.push(which);
    const { handle } = startEngine({ platform });
    await handle(message("mine"));
    const mine = command("forget", "conversation", { author: { ...ada, mayConfigure: false } });
    const all = command("forget", "conversation");
    for (const event of [mine, all, command("forget", "here", { conversationId: "test:people" })]) await handle(event);
    expect(forgotten).toEqual([
      [{ authorId: "ada", conversation: { id: "test:a", before: mine.at } }],
      [{ conversation: { id: "test:a", before: all.at } }],
    ]);
  });
});

describe("the question that continues an answer", () => {
  test("two deliveries of one press make the same continuation question, which follows the end of that answer", () => {
    const asked = message("Tell me");
    const record = { ...newRecord([asked], [asked]), posted: ["test:p1", "test:p2"] };
    const press = action("continue", record.id, { conversationId: "test:elsewhere" });
    const question = toContinuationEvent(press, record);
    expect(question).toEqual(toContinuationEvent(press, record));
    expect(question).toMatchObject({ inReplyTo: "test:p2", conversationId: "test:a", addressed: "bot" });
  });
});
