import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { ben, message } from "../../lab/support/events.ts";
import { recordingLog } from "../../lab/support/log.ts";
import { createHistory } from "../../src/history/history.ts";
import type { Earlier, EarlierMessage, EarlierRange } from "../../src/port/events.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createStores } from "../../src/store/keyv.ts";
import { createBringEarlier, createOverhear } from "../../src/turn/context.ts";
import { storeQuestions, toEntry } from "../../src/turn/questions.ts";

const never = new AbortController().signal;

function setUp(found: Earlier | Error) {
  const ranges: EarlierRange[] = [];
  const { log, lines } = recordingLog();
  const stores = createStores({ redisUrl: undefined, database: new DatabaseSync(":memory:"), log }, NO_RIGHT);
  const history = createHistory({ ...stores, ttlMs: 60_000, log, now: () => 1_800_000_000_000 });
  const place = { found };
  const adapter = {
    async readEarlier(_: unknown, range: EarlierRange) {
      ranges.push(range);
      if (place.found instanceof Error) throw place.found;
      return place.found;
    },
  };
  const bringEarlier = createBringEarlier({ history, adapterOf: () => adapter, log });
  const kept = async () => (await history.read("test:a", { maxEntries: 500 })).entries;
  return { bringEarlier, overhear: createOverhear(history, log), history, place, kept, lines, ranges };
}

function said(text: string, messageId = `test:${text}`): EarlierMessage {
  return { messageId, author: ben, text, attachments: [], at: 5 };
}

describe("the earlier messages of a thread in a turn's context", () => {
  test("bringEarlier stores each message under its author, marked as earlier", async () => {
    const { bringEarlier, kept } = setUp({
      messages: [
        { ...said("Lunch?"), isRoot: true },
        { ...said("beep"), by: "app" },
      ],
    });
    await bringEarlier([message("Hello")], never);
    const entry = {
      id: "test:Lunch?",
      at: 5,
      author: { platform: "test", id: "ben", name: "Ben" },
      messages: [{ role: "user", content: "Lunch?" }],
      attachments: [],
      isEarlier: true,
      isRoot: true,
    };
    expect(await kept()).toEqual([entry, expect.objectContaining({ id: "test:beep", by: "app", isEarlier: true })]);
  });

  test("bringEarlier leaves out the question, empty messages and duplicates, and truncates endless ones", async () => {
    const question = message("Hello");
    const messages = [
      said("a"),
      said("a"),
      said(" "),
      said("Hello", question.messageId),
      said("x".repeat(9_000), "test:x"),
    ];
    const { bringEarlier, kept } = setUp({ messages });
    await bringEarlier([question], never);
    expect((await kept()).map(({ id }) => id)).toEqual(["test:a", "test:x"]);
    expect((await kept())[1]?.messages[0]?.content).toMatch(/^x{4000}\n\[… 5000 characters left out …]$/);
  });

  test("several questions keep their order among the messages in between", async () => {
    const [one, two, three] = [message("one"), message("two", { inReplyTo: "test:x" }), message("three")];
    const between = [said("one", one.messageId), said("a"), said("two", two.messageId), said("b")];
    const { bringEarlier, history, kept } = setUp({ messages: between });
    await bringEarlier([one, two, three], never);
    for (const question of [one, two, three]) await history.append("test:a", toEntry(question));
    const inOrder = [one.messageId, "test:a", "test:b", two.messageId, three.messageId];
    expect((await kept()).map(({ id }) => id)).toEqual(inOrder);
    expect((await kept()).map(({ isEarlier }) => isEarlier)).toEqual([undefined, true, true, undefined, undefined]);
  });

  test("a question stays before later messages even if an earlier attempt could not store it", async () => {
    const { bringEarlier, place, kept, history } = setUp({ messages: [] });
    const [first, second, third] = [1, 2, 3].map((at) => message(`question ${at}`, { at }));
    if (first === undefined || second === undefined || third === undefined) throw new Error("there are three");
    await bringEarlier([first], never);
    place.found = { messages: [{ ...said(second.text, second.messageId), at: second.at }] };
    await bringEarlier([first, second, third], never);
    for (const question of [first, second, third]) await history.append("test:a", toEntry(question));
    expect((await kept()).map(({ id }) => id)).toEqual([first, second, third].map(({ messageId }) => messageId));
    expect((await kept()).some(({ isEarlier }) => isEarlier)).toBe(false);
  });

  test("bringEarlier first reads everything, then only messages since the previous question", async () => {
    const { bringEarlier, history, kept, place, ranges } = setUp({ messages: [said("a")] });
    const [first, second] = [message("Hello"), message("And?")];
    await bringEarlier([first], never);
    await history.append("test:a", toEntry(first));
    place.found = { messages: [said("a"), said("b")] };
    await bringEarlier([second], never);
    // The question resumes after a crash.
    await bringEarlier([second], never);
    expect(ranges.map(({ since }) => since)).toEqual([undefined, first.at]);
    expect((await kept()).map(({ id }) => id)).toEqual(["test:a", first.messageId, "test:b"]);
  });

  test("the bot stores the mark of an empty thread with the question in one write, and then reads only newer messages", async () => {
    const { bringEarlier, history, ranges } = setUp({ messages: [] });
    const [first, second] = [message("Hello", { at: 10 }), message("And?", { at: 20 })];
    const { nothingUntil } = await bringEarlier([first], never);
    expect([nothingUntil, await history.broughtUntil("test:a")]).toEqual([10, undefined]);
    await storeQuestions(history, [first], recordingLog().log, nothingUntil);
    expect(await history.broughtUntil("test:a")).toBe(10);
    await bringEarlier([second], never);
    expect(ranges.map(({ since }) => since)).toEqual([undefined, 10]);
  });

  test("bringEarlier does not bring back erased messages", async () => {
    const { bringEarlier, history, kept, ranges } = setUp({ messages: [said("a")] });
    await bringEarlier([message("Hello")], never);
    await history.forgetConversation("test:a");
    await bringEarlier([message("Hello again")], never);
    expect([await kept(), ranges.length]).toEqual([[], 1]);
  });

  test("bringEarlier says once that it could read only some messages", async () => {
    const { bringEarlier, history, place } = setUp({ messages: [said("a")], isPartial: true });
    const first = message("Hello");
    expect((await bringEarlier([first], never)).notice).toContain("only some");
    await history.append("test:a", toEntry(first));
    place.found = { messages: [], isPartial: true };
    expect(await bringEarlier([message("And?")], never)).toEqual({});
  });

  test("the bot logs a failed read of earlier messages without people's words, and retries it for the next question", async () => {
    const { bringEarlier, history, kept, lines, place, ranges } = setUp(new Error("missing_scope"));
    const first = message("canary");
    expect((await bringEarlier([first], never)).notice).toContain("couldn't read");
    expect(lines).toMatchObject([{ level: 40, msg: expect.stringContaining("earlier messages of a thread") }]);
    expect(JSON.stringify(lines)).not.toContain("canary");
    await history.append("test:a", toEntry(first));
    place.found = { messages: [said("a")] };
    await bringEarlier([message("And?")], never);
    expect(ranges.map(({ since }) => since)).toEqual([undefined, undefined]);
    expect((await kept()).map(({ id }) => id)).toEqual([first.messageId, "test:a"]);
  });

  test("the read of earlier messages ends with the work it belongs to", async () => {
    const controller = new AbortController();
    const { history } = setUp({ messages: [] });
    const readEarlier = () => {
      controller.abort("shutdown");
      return new Promise<Earlier>(() => {});
    };
    const bringEarlier = createBringEarlier({ history, adapterOf: () => ({ readEarlier }), log: recordingLog().log });
    await expect(bringEarlier([message("Hello")], controller.signal)).rejects.toBe("shutdown");
  });
});

describe("messages to others that the bot overhears", () => {
  test("the bot stores an overheard message only if its conversation has a history", async () => {
    const { overhear, history, kept } = setUp({ messages: [] });
    await overhear([message("to nobody")]);
    expect(await kept()).toEqual([]);
    const question = message("Hello");
    await history.append("test:a", toEntry(question));
    const other = message("to Cleo", { addressed: "other", author: ben });
    await overhear([other]);
    expect(await kept()).toMatchObject([{ id: question.messageId }, { id: other.messageId, isEarlier: true }]);
  });
});
