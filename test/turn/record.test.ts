import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { toTurnId } from "../../src/port/ids.ts";
import { createStores } from "../../src/store/keyv.ts";
import { createTurnRecords, newRecord, type TurnRecord } from "../../src/turn/record.ts";
import { ada, ben, message } from "../support/events.ts";
import { recordingLog, silent } from "../support/log.ts";

function open(log = silent, database = new DatabaseSync(":memory:")) {
  const stores = createStores({ redisUrl: undefined, database, log: silent });
  return {
    database,
    stored: stores.open("turns"),
    records: createTurnRecords({ ...stores, ttlMs: 60_000, log }),
  };
}

const question = message("Hello");

function record(id: string, author = ada): TurnRecord {
  return { ...newRecord([question], [question]), id, author };
}

describe("turn records", () => {
  test("come back as they were saved", async () => {
    const { records } = open();
    await records.save({ ...record("one"), posted: ["test:reply1"], phase: "posted" });
    expect(await records.load("one")).toEqual({ ...record("one"), posted: ["test:reply1"], phase: "posted" });
    expect(await records.load("two")).toBeUndefined();
  });

  test("say whose a message is while it is being written, those included that were stored without their turn", async () => {
    const { records, stored } = open();
    await records.save({ ...record("one"), posted: ["test:reply1"], phase: "posted" });
    await stored.set("posted:test%3Areply2", "test:b");
    const ofMessage = async (id: string) => [await records.turnOf(id), await records.conversationOf(id)];
    expect(await ofMessage("test:reply1")).toEqual(["one", "test:a"]);
    expect(await ofMessage("test:reply2")).toEqual([undefined, "test:b"]);
    expect(await ofMessage("test:reply3")).toEqual([undefined, undefined]);
  });

  test("say that a first message may be there for as long as none is known", async () => {
    const { records } = open();
    const begun = { ...record("one"), attempts: 1, seen: 40 };
    await records.note(begun);
    expect(await records.load("one")).toEqual({ ...begun, isPosting: true });
    await records.save({ ...begun, posted: ["test:reply1"], phase: "posted" });
    expect(await records.load("one")).toMatchObject({ isPosting: false });
    await records.save({ ...begun, phase: "final" });
    expect(await records.load("one")).toMatchObject({ isPosting: false });
  });

  test("are not put back by a note of how far they had come that the store takes late", async () => {
    const database = new DatabaseSync(":memory:");
    const stores = createStores({ redisUrl: undefined, database, log: silent });
    let isAway = true;
    const keyv = stores.open("turns");
    const setMany = keyv.setMany.bind(keyv);
    keyv.setMany = async (entries) => (isAway ? Promise.reject(new Error("The store is away.")) : setMany(entries));
    const records = createTurnRecords({ ...stores, open: () => keyv, ttlMs: 60_000, log: silent });
    const answer: TurnRecord = record("one");
    const late = records.note(answer);
    isAway = false;
    Object.assign(answer, { phase: "final", posted: ["test:reply1"] });
    await records.save(answer);
    await late;
    expect(await records.load("one")).toMatchObject({ phase: "final", posted: ["test:reply1"] });
  });

  test("of the first version are read with what was added since", async () => {
    const { records, stored } = open();
    const { removed, isPosting, seen, canRetry, canContinue, ...first } = record("one");
    await stored.set("one", first);
    expect(await records.load("one")).toEqual({ ...first, removed, isPosting, seen, canRetry, canContinue });
  });

  test("that are damaged, or of a later version, count as absent", async () => {
    const { records, stored } = open();
    await stored.set("one", { ...record("one"), posted: "test:reply1" });
    await stored.set("two", { ...record("two"), v: 2 });
    expect([await records.load("one"), await records.load("two")]).toEqual([undefined, undefined]);
  });

  test("keep what the port says of places and people beyond what is read here", async () => {
    const { records } = open();
    const reply = { ...question.reply, threadId: "t", visibleTo: "ada", extra: { token: "x" } };
    const full = { ...record("one", { ...ada, isModerator: true, former: { id: "old" } }), reply, isPosting: true };
    await records.save(full);
    expect(await records.load("one")).toEqual(full);
  });

  test("of one person are erased without a trace, those of others stay", async () => {
    const { records, database } = open();
    await records.save(record("one"));
    await records.save(record("two"));
    await records.save(record("other", ben));
    await records.forget("test", ada.id);
    expect([await records.load("one"), await records.load("two")]).toEqual([undefined, undefined]);
    expect(await records.load("other")).toBeDefined();
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    const rows = tables.map(({ name }) => JSON.stringify(database.prepare(`SELECT * FROM ${String(name)}`).all()));
    expect(rows.join()).not.toContain("Ada");
    expect(rows.join()).toContain("Ben");
  });

  test("that cannot be stored are said in the log, and the turn goes on", async () => {
    const { log, lines } = recordingLog();
    const { records, database } = open(log);
    database.close();
    expect(await records.save(record("one"))).toBe(false);
    expect(lines.length).toBeGreaterThan(0);
  });
});

describe("the judgements of an answer", () => {
  test("are kept with the turn, the latest of each person, and repetitions do not count", async () => {
    const { records } = open();
    await records.save(record("one"));
    const rate = async (id: string, authorId: string, feedback: "good" | "bad", edition = 1) =>
      (await records.rate({ id, edition }, authorId, feedback)).isNew;
    expect(await rate("one", "ben", "good")).toBe(true);
    expect(await rate("one", "ben", "good")).toBe(false);
    expect(await Promise.all([rate("one", "ben", "bad"), rate("one", "cleo", "good")])).toEqual([true, true]);
    expect((await records.load("one"))?.feedback).toEqual({ ben: "bad", cleo: "good" });
    expect(await rate("long gone", "ben", "good")).toBe(false);
  });

  test("belong to the edition of the answer that was judged: the same word about the next one is new", async () => {
    const { records } = open();
    await records.save(record("one"));
    const rate = (edition: number, reason?: string) => records.rate({ id: "one", edition }, "ben", "bad", reason);
    const ofBen = () => records.readFeedback("test", "ben");
    await rate(1, "the wrong year");
    expect(await rate(2)).toEqual({ isNew: true, hasNewReason: false });
    expect(await rate(2)).toEqual({ isNew: false, hasNewReason: false });
    expect(await ofBen()).toEqual([{ turnId: "one", feedback: "bad", edition: 2 }]);
    await records.forget("test", "ben");
    expect((await records.load("one"))?.judged).toEqual({});
  });

  test("are kept with their reason, which goes with a new judgement and with the person", async () => {
    const { records, database } = open();
    await records.save(record("one"));
    const rate = (id: string, authorId: string, feedback: "good" | "bad", reason?: string) =>
      records.rate({ id, edition: 1 }, authorId, feedback, reason);
    const ofBen = () => records.readFeedback("test", "ben");
    await rate("one", "ben", "bad");
    expect(await rate("one", "ben", "bad", "the wrong year")).toEqual({ isNew: false, hasNewReason: true });
    expect(await rate("one", "ben", "bad", "the wrong year")).toEqual({ isNew: false, hasNewReason: false });
    expect(await rate("one", "cleo", "bad", "too long")).toEqual({ isNew: true, hasNewReason: true });
    expect(await rate("one", "ben", "bad")).toEqual({ isNew: false, hasNewReason: false });
    expect(await ofBen()).toEqual([{ turnId: "one", feedback: "bad", reason: "the wrong year" }]);
    await rate("one", "ben", "good");
    expect(await ofBen()).toEqual([{ turnId: "one", feedback: "good" }]);
    await rate("one", "ben", "bad", "the wrong year");
    await records.forget("test", "ben");
    expect(await ofBen()).toEqual([]);
    const stored = JSON.stringify(database.prepare("SELECT * FROM keyv").all());
    expect([stored.includes("wrong year"), stored.includes("too long")]).toEqual([false, true]);
  });

  test("are erased with the person, also from the turns of others, and can be exported before", async () => {
    const { records, database } = open();
    await records.save(record("one"));
    await records.save(record("two", ben));
    for (const id of ["one", "two"])
      for (const rater of ["rater", "cleo"]) await records.rate({ id, edition: 1 }, rater, "bad");
    expect(await records.readFeedback("test", "rater")).toEqual(
      expect.arrayContaining([
        { turnId: "one", feedback: "bad" },
        { turnId: "two", feedback: "bad" },
      ]),
    );
    await records.forget("test", "rater");
    expect(await records.readFeedback("test", "rater")).toEqual([]);
    expect((await records.load("one"))?.feedback).toEqual({ cleo: "bad" });
    expect(JSON.stringify(database.prepare("SELECT * FROM keyv").all())).not.toContain("rater");
  });

  test("are gone with the record of the turn", async () => {
    const { records, database } = open();
    await records.save(record("one"));
    await records.save(record("two"));
    await records.rate({ id: "one", edition: 1 }, "ben", "good");
    await records.erase(["one", "never was"]);
    expect(await records.load("one")).toBeUndefined();
    expect(await records.readFeedback("test", "ben")).toEqual([]);
    expect(await records.load("two")).toBeDefined();
    expect(JSON.stringify(database.prepare("SELECT * FROM keyv").all())).not.toMatch(/by:test:ada:one/);
  });
});

describe("toTurnId", () => {
  test("is the same for the same event, another for another, and short enough for a button", () => {
    expect(toTurnId("event")).toBe(toTurnId("event"));
    expect(toTurnId("event")).not.toBe(toTurnId("another"));
    expect(toTurnId("event")).toMatch(/^[\w-]{16}$/);
  });
});
