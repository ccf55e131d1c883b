import { DatabaseSync } from "node:sqlite";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { message } from "../../lab/support/events.ts";
import { recordingLog, silent } from "../../lab/support/log.ts";
import { noFiles } from "../../lab/support/picture-turn.ts";
import { createHistory } from "../../src/history/history.ts";
import { FencedError, NO_RIGHT, withFence } from "../../src/port/right.ts";
import { createStores } from "../../src/store/keyv.ts";
import { StoreError } from "../../src/store/outage.ts";
import { createLateWrites, type LateWrite, type LateWrites } from "../../src/turn/late-writes.ts";
import { newRecord } from "../../src/turn/record.ts";
import { createTurnRecords } from "../../src/turn/records.ts";
import { GARBAGE } from "../support/garbage.ts";
import { answered, said } from "../support/history-contract.ts";

const NEVER = new AbortController().signal;
/** Another process can take over work that has this right. */
const RIGHT = withFence(NO_RIGHT, { key: "lane", value: "mine", check: async () => {} });

function open({ maxChars = 1_000_000 } = {}) {
  const { open, inTurn } = createStores(
    { redisUrl: undefined, database: new DatabaseSync(":memory:"), log: silent },
    NO_RIGHT,
  );
  const history = createHistory({ open, inTurn, ttlMs: 60_000, log: silent, now: Date.now });
  const records = createTurnRecords({ open, inTurn, ttlMs: 60_000, files: noFiles, log: silent });
  const database = new DatabaseSync(":memory:");
  const { log, lines } = recordingLog();
  let isAway = false;
  const appendLate: typeof history.appendLate = async (...given) => {
    if (isAway) throw new StoreError("The store is away.");
    return history.appendLate(...given);
  };
  const start = () => createLateWrites({ database, history: { appendLate }, records, log, maxChars });
  /** Stores an answer during an outage. The answer's turn waits only until the answer is in the list. */
  async function add(lateWrites: LateWrites, late: LateWrite): Promise<void> {
    const turn = new AbortController();
    const append = async () => {
      setImmediate(() => turn.abort("lost"));
      throw new StoreError("The store is away.");
    };
    await lateWrites.store({ history: { ...history, append }, right: RIGHT, log: silent }, late, turn.signal);
  }
  const texts = async () => {
    const { entries } = await history.read("test:a", { maxEntries: 10 });
    return entries.map(({ messages }) => messages.at(-1)?.content);
  };
  return { history, records, database, lines, start, add, texts, setAway: (away: boolean) => void (isAway = away) };
}

const question = message("tea?");

function answer(id: string, text: string): LateWrite {
  const record = { ...newRecord([question], [question]), id, conversationId: "test:a", phase: "final" as const };
  return { entry: answered(id, text), aliases: [`test:reply-${id}`], after: question.messageId, record };
}

type Opened = ReturnType<typeof open>;

/** An answer whose question is also missing from the history. */
function withQuestion(lateWrites: LateWrite): LateWrite {
  return { ...lateWrites, asked: [{ entry: said(question.messageId, "tea?"), news: { followedSince: question.at } }] };
}

describe("answers that the history has not accepted", () => {
  test("pending answers are stored once the history accepts them, each once, with their turns' records", async () => {
    const { add, history, records, start, texts, setAway } = open();
    await history.append("test:a", said(question.messageId, "tea?"));
    setAway(true);
    const lateWrites = start();
    await add(lateWrites, answer("one", "A leaf."));
    await add(lateWrites, answer("one", "A leaf."));
    await lateWrites.replay();
    expect(await texts()).toEqual(["tea?"]);
    setAway(false);
    await lateWrites.replay();
    await lateWrites.replay();
    expect(await texts()).toEqual(["tea?", "A leaf."]);
    expect(await records.load("one")).toMatchObject({ phase: "final" });
    expect(await history.find("test:reply-one")).toMatchObject({ entryId: "one" });
  });

  test("the next process finds the pending answers", async () => {
    const { add, history, start, texts, setAway } = open();
    await history.append("test:a", said(question.messageId, "tea?"));
    setAway(true);
    await add(start(), answer("one", "A leaf."));
    setAway(false);
    await start().replay();
    expect(await texts()).toEqual(["tea?", "A leaf."]);
  });

  test("a pending answer does not replace a newer answer", async () => {
    const { add, history, records, start, texts } = open();
    await history.append("test:a", said(question.messageId, "tea?"));
    await history.append("test:a", answered("one", "A drink."));
    const { record } = answer("one", "");
    await records.save({ ...record, posted: ["test:other"] });
    const lateWrites = start();
    await add(lateWrites, answer("one", "A leaf."));
    await lateWrites.replay();
    expect(await texts()).toEqual(["tea?", "A drink."]);
    expect(await records.load("one")).toMatchObject({ posted: ["test:other"] });
  });

  test.each([
    ["a pending answer leaves the record to a newer attempt", 2, "posted"],
    ["a pending answer ends the record of its own attempt", 1, "final"],
  ])("%s", async (_what, begun, phase) => {
    const { add, history, records, start } = open();
    await history.append("test:a", said(question.messageId, "tea?"));
    const given = answer("one", "A leaf.");
    await records.save({ ...given.record, phase: "posted", attempts: begun });
    const lateWrites = start();
    await add(lateWrites, { ...given, attempts: 1 });
    await lateWrites.replay();
    expect(await records.load("one")).toMatchObject({ phase });
  });

  test("a pending answer replaces the answer to the question before an edit, and no later answer", async () => {
    const { add, history, start, texts } = open();
    await history.append("test:a", said(question.messageId, "tea?"));
    await history.append("test:a", answered("one", "A drink."));
    const lateWrites = start();
    const late = (text: string, end: number, at: number) => {
      const given = answer("one", text);
      return { ...given, entry: { ...given.entry, end, at } };
    };
    await add(lateWrites, late("A leaf.", 2, 1_000));
    await lateWrites.replay();
    expect(await texts()).toEqual(["tea?", "A leaf."]);
    // The frozen process's clock can be ahead of the other process's clock.
    await add(lateWrites, late("A dri", 2, Date.now() + 90_000));
    await lateWrites.replay();
    expect(await texts()).toEqual(["tea?", "A leaf."]);
  });

  test("a pending answer is dropped with its question", async () => {
    const { add, records, lines, start, texts } = open();
    const lateWrites = start();
    await add(lateWrites, answer("one", "A leaf."));
    await lateWrites.replay();
    expect(await texts()).toEqual([]);
    expect(await records.load("one")).toBeUndefined();
    expect(lines).toMatchObject([{ turnId: "one", msg: expect.stringContaining("its question is missing there") }]);
  });

  test("unreadable pending answers are skipped and logged", async () => {
    const { add, history, database, lines, start, texts, setAway } = open();
    await history.append("test:a", said(question.messageId, "tea?"));
    setAway(true);
    start();
    const insert = database.prepare("INSERT INTO unkept_answer (id, answer) VALUES (?, ?)");
    for (const [index, text] of GARBAGE.entries()) insert.run(`bad${index}`, text);
    setAway(false);
    const lateWrites = start();
    await lateWrites.replay();
    await add(lateWrites, answer("one", "A leaf."));
    await lateWrites.replay();
    expect(await texts()).toEqual(["tea?", "A leaf."]);
    expect(lateWrites.count()).toBe(0);
    expect(lines).toContainEqual(expect.objectContaining({ key: "unkept_answer" }));
  });

  test("a pending answer brings its question if the history lacks it too", async () => {
    const { add, history, records, start, texts } = open();
    await history.append("test:a", { ...said("test:other", "milk?"), at: 1 });
    const lateWrites = start();
    const late = withQuestion(answer("one", "A leaf."));
    await records.save({ ...late.record, phase: "posted" });
    await add(lateWrites, late);
    await lateWrites.replay();
    expect(await texts()).toEqual(["milk?", "tea?", "A leaf."]);
    expect(await history.isFollowed("test:a")).toBe(true);
    expect(await records.load("one")).toMatchObject({ phase: "final" });
  });

  test.each([
    ["deleted", ({ history }: Opened) => history.markDeleted(question.messageId)],
    ["erased with its conversation", ({ history }: Opened) => history.forgetConversation("test:a")],
    ["erased with its person", ({ records }: Opened) => records.forget("test", question.author.id)],
  ])("a pending answer does not bring back a question that was %s", async (_how, erase) => {
    const opened = open();
    const { add, history, records, start, texts } = opened;
    await history.setFollowed("test:a", true);
    const lateWrites = start();
    const late = withQuestion(answer("one", "A leaf."));
    await records.save({ ...late.record, phase: "posted" });
    await erase(opened);
    await add(lateWrites, late);
    await lateWrites.replay();
    expect(await texts()).toEqual([]);
  });

  test("the oldest pending answers are dropped if there are too many, which is logged", async () => {
    const { add, history, lines, start, setAway } = open({ maxChars: 4_000 });
    await history.append("test:a", said(question.messageId, "tea?"));
    setAway(true);
    const lateWrites = start();
    for (const id of ["one", "two", "three"]) await add(lateWrites, answer(id, `${id} ${"long ".repeat(200)}`));
    expect(lines).toMatchObject([{ turnIds: ["one"], msg: expect.stringContaining("were dropped") }]);
    setAway(false);
    await lateWrites.replay();
    const found = await Promise.all(["one", "two", "three"].map((id) => history.find(id)));
    expect(found.map((place) => place?.entryId)).toEqual([undefined, "two", "three"]);
  });
});

describe("a turn whose answer the history does not accept", () => {
  /** Stores an answer and its question. The history fails as given. */
  function setUp(...failures: Error[]) {
    const opened = open();
    const { history, start } = opened;
    const stored: string[] = [];
    const append: typeof history.append = async (...given) => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      stored.push(given[1].id);
    };
    const lateWrites = start();
    const services = { history: { ...history, append }, right: RIGHT, log: silent };
    const store = (signal = NEVER, right = RIGHT) =>
      lateWrites.store({ ...services, right }, withQuestion(answer("one", "A leaf.")), signal);
    return { ...opened, lateWrites, stored, store };
  }

  test("a turn waits until the history has its answer, after the question, if another process can take it over", async () => {
    const { lateWrites, stored, store } = setUp(new StoreError("away"), new StoreError("still away"));
    await store();
    expect(stored).toEqual([question.messageId, "one"]);
    expect(lateWrites.count()).toBe(0);
  });

  test("a turn that another process took over never writes again", async () => {
    const { lateWrites, stored, store } = setUp(new FencedError("another process does it"));
    await store();
    expect(stored).toEqual([]);
    expect(lateWrites.count()).toBe(0);
  });

  test("a turn that starts to wait during a replay is not forgotten after the replay", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const { database, history, lateWrites, stored, store } = setUp(new StoreError("away"));
    database.exec("PRAGMA query_only = ON");
    const [reached, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let isFirst = true;
    const append = async () => {
      if (isFirst) throw new StoreError("away");
      reached.resolve();
      return held.promise;
    };
    const services = { history: { ...history, append }, right: RIGHT, log: silent };
    const others = lateWrites.store(services, answer("other", "A drink."), NEVER);
    await vi.advanceTimersByTimeAsync(0);
    isFirst = false;
    const replaying = lateWrites.replay();
    await reached.promise;
    const storing = store();
    await vi.advanceTimersByTimeAsync(2_000);
    held.resolve();
    await Promise.all([replaying, others]);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(stored).toEqual([question.messageId, "one"]);
    await storing;
  });

  test("a turn that no other process can take over waits too, but not for long", async () => {
    const { stored, store } = setUp(new StoreError("away"));
    await store(NEVER, NO_RIGHT);
    expect(stored).toEqual([question.messageId, "one"]);
  });

  test("an answer that the disk cannot keep is stored while its turn waits", async () => {
    const { database, stored, store } = setUp(new StoreError("away"));
    database.exec("PRAGMA query_only = ON");
    await store();
    expect(stored).toEqual([question.messageId, "one"]);
  });
});
