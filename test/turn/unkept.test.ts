import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createHistory } from "../../src/history/history.ts";
import { createStores } from "../../src/store/keyv.ts";
import { StoreError } from "../../src/store/outage.ts";
import { createTurnRecords, newRecord } from "../../src/turn/record.ts";
import { createUnkeptAnswers, type UnkeptAnswer } from "../../src/turn/unkept.ts";
import { message } from "../support/events.ts";
import { answered, said } from "../support/history-contract.ts";
import { recordingLog, silent } from "../support/log.ts";

const NEVER = new AbortController().signal;

function open({ maxChars = 1_000_000 } = {}) {
  const { open, inTurn } = createStores({ redisUrl: undefined, database: new DatabaseSync(":memory:"), log: silent });
  const history = createHistory({ open, inTurn, ttlMs: 60_000, log: silent, now: Date.now });
  const records = createTurnRecords({ open, inTurn, ttlMs: 60_000, log: silent });
  const database = new DatabaseSync(":memory:");
  const { log, lines } = recordingLog();
  let isAway = false;
  const appendLate: typeof history.appendLate = async (...given) => {
    if (isAway) throw new StoreError("The store is away.");
    return history.appendLate(...given);
  };
  const start = () => createUnkeptAnswers({ database, history: { appendLate }, records, log, maxChars });
  const texts = async () => {
    const { entries } = await history.read("test:a", { maxEntries: 10 });
    return entries.map(({ messages }) => messages.at(-1)?.content);
  };
  return { history, records, lines, start, texts, setAway: (away: boolean) => void (isAway = away) };
}

const question = message("tea?");

function answer(id: string, text: string): UnkeptAnswer {
  const record = { ...newRecord([question], [question]), id, conversationId: "test:a", phase: "final" as const };
  return { entry: answered(id, text), aliases: [`test:reply-${id}`], after: question.messageId, record };
}

type Opened = ReturnType<typeof open>;

/** What the history took neither of. */
function withQuestion(unkept: UnkeptAnswer): UnkeptAnswer {
  return { ...unkept, asked: [{ entry: said(question.messageId, "tea?") }] };
}

describe("answers that the history has not taken", () => {
  test("are in it once it takes them, each once, with the records of their turns", async () => {
    const { history, records, start, texts, setAway } = open();
    await history.append("test:a", said(question.messageId, "tea?"));
    setAway(true);
    const unkept = start();
    unkept.add(answer("one", "A leaf."));
    unkept.add(answer("one", "A leaf."));
    await unkept.replay();
    expect(await texts()).toEqual(["tea?"]);
    setAway(false);
    await unkept.settled("one", NEVER);
    await unkept.replay();
    expect(await texts()).toEqual(["tea?", "A leaf."]);
    expect(await records.load("one")).toMatchObject({ phase: "final" });
    expect(await history.find("test:reply-one")).toMatchObject({ entryId: "one" });
  });

  test("are found by the next run of the process", async () => {
    const { history, start, texts, setAway } = open();
    await history.append("test:a", said(question.messageId, "tea?"));
    setAway(true);
    start().add(answer("one", "A leaf."));
    setAway(false);
    await start().replay();
    expect(await texts()).toEqual(["tea?", "A leaf."]);
  });

  test("take nobody's place who has answered meanwhile", async () => {
    const { history, records, start, texts } = open();
    await history.append("test:a", said(question.messageId, "tea?"));
    await history.append("test:a", answered("one", "A drink."));
    const { record } = answer("one", "");
    await records.save({ ...record, posted: ["test:other"] });
    const unkept = start();
    unkept.add(answer("one", "A leaf."));
    await unkept.replay();
    expect(await texts()).toEqual(["tea?", "A drink."]);
    expect(await records.load("one")).toMatchObject({ posted: ["test:other"] });
  });

  test.each([
    ["leave the record to whoever has begun the answer once more", 2, "posted"],
    ["end the record where nobody has begun the answer once more", 1, "final"],
  ])("%s", async (_what, begun, phase) => {
    const { history, records, start } = open();
    await history.append("test:a", said(question.messageId, "tea?"));
    const given = answer("one", "A leaf.");
    await records.save({ ...given.record, phase: "posted", attempts: begun });
    const unkept = start();
    unkept.add({ ...given, attempts: 1 });
    await unkept.replay();
    expect(await records.load("one")).toMatchObject({ phase });
  });

  test("take the place of the answer to the question as it was before an edit, and of no later one", async () => {
    const { history, start, texts } = open();
    await history.append("test:a", said(question.messageId, "tea?"));
    await history.append("test:a", answered("one", "A drink."));
    const unkept = start();
    const late = (text: string, end: number, at: number) => {
      const given = answer("one", text);
      return { ...given, entry: { ...given.entry, end, at } };
    };
    unkept.add(late("A leaf.", 2, 1_000));
    await unkept.replay();
    expect(await texts()).toEqual(["tea?", "A leaf."]);
    // The clock of whoever was cut off may be ahead of the clock of whoever took over.
    unkept.add(late("A dri", 2, Date.now() + 90_000));
    await unkept.replay();
    expect(await texts()).toEqual(["tea?", "A leaf."]);
  });

  test("are gone with their question", async () => {
    const { records, lines, start, texts } = open();
    const unkept = start();
    unkept.add(answer("one", "A leaf."));
    await unkept.replay();
    await unkept.settled("one", NEVER);
    expect(await texts()).toEqual([]);
    expect(await records.load("one")).toBeUndefined();
    expect(lines).toMatchObject([{ turnId: "one", msg: expect.stringContaining("what it answers is not there") }]);
  });

  test("bring the question that the history has not taken either", async () => {
    const { history, records, start, texts } = open();
    await history.append("test:a", { ...said("test:other", "milk?"), at: 1 });
    const unkept = start();
    const late = withQuestion(answer("one", "A leaf."));
    await records.save({ ...late.record, phase: "posted" });
    unkept.add(late);
    await unkept.replay();
    expect(await texts()).toEqual(["milk?", "tea?", "A leaf."]);
    expect(await records.load("one")).toMatchObject({ phase: "final" });
  });

  test.each([
    ["deleted", ({ history }: Opened) => history.markDeleted(question.messageId)],
    ["erased with its conversation", ({ history }: Opened) => history.forgetConversation("test:a")],
    ["erased with its person", ({ records }: Opened) => records.forget("test", question.author.id)],
  ])("do not bring back a question that was %s", async (_how, erase) => {
    const opened = open();
    const { history, records, start, texts } = opened;
    await history.setFollowed("test:a", true);
    const unkept = start();
    const late = withQuestion(answer("one", "A leaf."));
    await records.save({ ...late.record, phase: "posted" });
    await erase(opened);
    unkept.add(late);
    await unkept.replay();
    expect(await texts()).toEqual([]);
  });

  test("give way to newer ones where they are too many, which is logged", async () => {
    const { history, lines, start, setAway } = open({ maxChars: 4_000 });
    await history.append("test:a", said(question.messageId, "tea?"));
    setAway(true);
    const unkept = start();
    for (const id of ["one", "two", "three"]) unkept.add(answer(id, `${id} ${"long ".repeat(200)}`));
    await unkept.settled("one", NEVER);
    expect(lines).toMatchObject([{ turnIds: ["one"], msg: expect.stringContaining("were dropped") }]);
    setAway(false);
    await unkept.replay();
    const found = await Promise.all(["one", "two", "three"].map((id) => history.find(id)));
    expect(found.map((place) => place?.entryId)).toEqual([undefined, "two", "three"]);
  });

  test("are waited for no longer than a signal says", async () => {
    const { start, setAway } = open();
    setAway(true);
    const unkept = start();
    unkept.add(answer("one", "A leaf."));
    const controller = new AbortController();
    const settled = unkept.settled("one", controller.signal);
    controller.abort("shutdown");
    await settled;
  });
});
