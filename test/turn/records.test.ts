import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { ada, ben, message } from "../../lab/support/events.ts";
import { recordingLog, silent } from "../../lab/support/log.ts";
import { noFiles, pictureTurn } from "../../lab/support/picture-turn.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createStores } from "../../src/store/keyv.ts";
import { newRecord, type TurnRecord } from "../../src/turn/record.ts";
import { createTurnRecords, type PictureFiles } from "../../src/turn/records.ts";

function open(log = silent, database = new DatabaseSync(":memory:")) {
  const stores = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
  const erasedFiles: string[] = [];
  const files: PictureFiles = {
    erase: async ({ id }) => void erasedFiles.push(id),
    forget: async (platform, authorId) => void erasedFiles.push(`all of ${platform} ${authorId}`),
  };
  return {
    database,
    stored: stores.open("turns"),
    records: createTurnRecords({ ...stores, ttlMs: 60_000, files, log }),
    erasedFiles,
  };
}

const question = message("Hello");

function record(id: string, author = ada): TurnRecord {
  return { ...newRecord([question], [question]), id, author };
}

describe("turn records", () => {
  test("a turn record names the turn that owns a message while the turn writes it", async () => {
    const { records } = open();
    await records.save({ ...record("one"), posted: ["test:reply1"], phase: "posted" });
    const ofMessage = async (id: string) => [await records.turnOf(id), await records.conversationOf(id)];
    expect(await ofMessage("test:reply1")).toEqual(["one", "test:a"]);
    expect(await ofMessage("test:reply3")).toEqual([undefined, undefined]);
  });

  test("a turn record says that a first message may exist until a process knows the message", async () => {
    const { records } = open();
    const begun = { ...record("one"), attempts: 1, seen: 40 };
    await records.save(begun);
    await records.note(begun);
    expect(await records.load("one")).toEqual({ ...begun, isPosting: true });
    await records.save({ ...begun, posted: ["test:reply1"], phase: "posted" });
    expect(await records.load("one")).toMatchObject({ isPosting: false });
    await records.save({ ...begun, phase: "final" });
    expect(await records.load("one")).toMatchObject({ isPosting: false });
  });

  test("a late progress note does not overwrite a newer turn record", async () => {
    const database = new DatabaseSync(":memory:");
    const stores = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
    let isAway = true;
    const keyv = stores.open("turns");
    const { write } = keyv;
    keyv.write = async (entries, removed) =>
      isAway ? Promise.reject(new Error("The store is away.")) : write(entries, removed);
    const records = createTurnRecords({ ...stores, open: () => keyv, ttlMs: 60_000, files: noFiles, log: silent });
    const answer: TurnRecord = record("one");
    const late = records.note(answer);
    isAway = false;
    Object.assign(answer, { phase: "final", posted: ["test:reply1"] });
    await records.save(answer);
    await late;
    expect(await records.load("one")).toMatchObject({ phase: "final", posted: ["test:reply1"] });
  });

  test("a late progress note does not bring back an erased turn record", async () => {
    const { records } = open();
    await records.save(record("one"));
    await records.forget("test", ada.id);
    await records.note({ ...record("one"), seen: 40 });
    expect(await records.load("one")).toBeUndefined();
  });

  test("a turn record has the newest note of a running answer, and none of a process that lost the turn", async () => {
    const { records } = open();
    const lost: TurnRecord = { ...record("one"), attempts: 1 };
    await records.begin(lost);
    for (const said of ["Tea", "Tea is", "Tea is good"]) {
      Object.assign(lost, { shownText: said, seen: said.length + 5 });
      await records.noteShownText(lost);
    }
    const heir = await records.load("one");
    if (heir === undefined) throw new Error("There is no record.");
    expect(heir).toMatchObject({ shownText: "Tea is good", seen: 16 });
    await records.begin(Object.assign(heir, { attempts: 2 }));
    await records.noteShownText(Object.assign(lost, { shownText: "Tea is bad", seen: 99 }));
    expect(await records.load("one")).toMatchObject({ attempts: 2, shownText: "Tea is good", seen: 16 });
    await records.noteShownText(
      Object.assign(heir, { shownText: "Tea is good and hot", seen: 30, isShownWhole: true }),
    );
    expect(await records.load("one")).toMatchObject({ shownText: "Tea is good and hot", seen: 30, isShownWhole: true });
  });

  test("a turn record keeps the text of notes before and after a save of the whole record", async () => {
    const { records } = open();
    const answer = record("one");
    await records.begin(answer);
    await records.noteShownText(Object.assign(answer, { shownText: "Tea is", seen: 10 }));
    await records.save(Object.assign(answer, { phase: "posted" as const, posted: ["test:reply1"] }));
    expect(await records.load("one")).toMatchObject({ phase: "posted", shownText: "Tea is", seen: 10 });
    await records.noteShownText(Object.assign(answer, { shownText: "Tea is good", seen: 20 }));
    expect(await records.load("one")).toMatchObject({ phase: "posted", shownText: "Tea is good", seen: 20 });
  });

  test("a turn record has the pages that the answer cited at the time of its newest note", async () => {
    const { records } = open();
    const answer = record("one");
    await records.begin(answer);
    const cited = [{ url: "https://a.example/", title: "A", marks: [1] }];
    await records.noteShownText(Object.assign(answer, { shownText: "Tea is", seen: 10, cited }));
    await records.noteShownText(Object.assign(answer, { shownText: "Tea is good", seen: 20 }));
    expect(await records.load("one")).toMatchObject({ shownText: "Tea is good", cited });
    delete answer.cited;
    await records.noteShownText(Object.assign(answer, { shownText: "Another", seen: 30 }));
    expect(await records.load("one")).toMatchObject({ shownText: "Another", cited: [] });
  });

  test("a late note of the text does not bring back an erased turn record, and its text is not stored", async () => {
    const { records, database } = open();
    const answer = record("one");
    await records.begin(answer);
    await records.noteShownText(Object.assign(answer, { shownText: "A secret", seen: 10 }));
    await records.forget("test", ada.id);
    await records.noteShownText(Object.assign(answer, { shownText: "A secret of Ada", seen: 20 }));
    expect(await records.load("one")).toBeUndefined();
    expect(JSON.stringify(database.prepare("SELECT * FROM keyv").all())).not.toContain("secret");
  });

  test("a damaged turn record, or one of a later version, counts as absent", async () => {
    const { records, stored } = open();
    await stored.set("one", { ...record("one"), posted: "test:reply1" });
    await stored.set("two", { ...record("two"), v: 2 });
    expect([await records.load("one"), await records.load("two")]).toEqual([undefined, undefined]);
  });

  test("a turn record keeps unknown fields of channels and people", async () => {
    const { records } = open();
    const reply = { ...question.reply, threadId: "t", visibleTo: "ada", extra: { token: "x" } };
    const full = { ...record("one", { ...ada, isModerator: true }), reply, isPosting: true };
    await records.save(full);
    expect(await records.load("one")).toEqual(full);
  });

  test("the turn records of one person are erased completely, and those of others stay", async () => {
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

  test("a turn record that cannot be stored is logged, and the turn continues", async () => {
    const { log, lines } = recordingLog();
    const { records, database } = open(log);
    database.close();
    expect(await records.save(record("one"))).toBe(false);
    expect(lines.length).toBeGreaterThan(0);
  });
});

describe("the ratings of an answer", () => {
  test("ratings are stored with the turn, the latest of each person, and repetitions do not count", async () => {
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

  test("a rating belongs to its edition: the same rating of the next edition is new", async () => {
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

  test("a rating has a reason, which is removed with a new rating and with the person", async () => {
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

  test("ratings are erased with the person, even in other people's turns, and can be exported before", async () => {
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
});

describe("the id of a turn", () => {
  test("toTurnId is stable per event, different for other events, and short enough for a button", () => {
    expect(toTurnId("event")).toBe(toTurnId("event"));
    expect(toTurnId("event")).not.toBe(toTurnId("another"));
    expect(toTurnId("event")).toMatch(/^[\w-]{16}$/);
  });
});

describe("the record of an image turn", () => {
  const attachment = { platform: "test", id: "x", name: "a.png", sizeBytes: 3 };
  const done = { state: "done", messageId: "test:1", attachment, text: "Here.", tokens: 5 } as const;
  const turn = pictureTurn({
    after: "m1",
    change: "vary",
    ratio: "16:9",
    size: "2K",
    posted: ["test:status"],
    phase: "posted",
    reply: { platform: "test", channelId: "general", threadId: "t", visibleTo: "ada", extra: { token: "x" } },
    author: { id: "ada", name: "Ada", isModerator: true },
    references: [attachment],
    parts: [{ state: "pending" }, done, { state: "failed", reason: "No.", canRetry: true }, { state: "deleted" }],
  });

  test("an image turn's record is read back as it was stored, and does not count as an answer", async () => {
    const { records } = open();
    await records.savePicture(turn);
    expect(await records.loadPicture("job")).toEqual(turn);
    expect(await records.load("job")).toBeUndefined();
    const answer = newRecord([message("Hello")], []);
    await records.save(answer);
    expect(await records.loadPicture(answer.id)).toBeUndefined();
  });

  test.each([1, { ...turn, v: 2 }, { ...turn, parts: [{ state: "odd" }] }, { ...turn, prompt: undefined }])(
    "an unreadable record of an image turn counts as absent",
    async (value) => {
      const { log, lines } = recordingLog();
      const { records, stored } = open(log);
      await stored.set("job", value);
      expect(await records.loadPicture("job")).toBeUndefined();
      expect(lines.map(({ msg }) => msg)).toEqual(["the record of a turn cannot be read"]);
    },
  );

  test("the record of an image turn keeps the latest state, however many are stored at once", async () => {
    const { records } = open();
    const own = structuredClone(turn);
    const first = records.savePicture(own);
    own.parts = [{ state: "deleted" }];
    await Promise.all([first, records.savePicture(own)]);
    expect(await records.loadPicture("job")).toEqual(own);
  });

  test("an erased record of an image turn is not stored again, and the caller learns this", async () => {
    const { records } = open();
    const own = structuredClone(turn);
    expect(await records.savePicture(own)).toBe(true);
    const loaded = await records.loadPicture("job");
    expect(await records.erasePictures({ conversation: turn.conversationId })).toEqual([turn]);
    expect([await records.savePicture(own), loaded && (await records.savePicture(loaded))]).toEqual([false, false]);
    expect(await records.loadPicture("job")).toBeUndefined();
  });

  test("the record of an image turn is locked for one change at a time", async () => {
    const { records } = open();
    const add = () =>
      records.updatePicture("job", (stored = structuredClone(turn)) => ({ ...stored, removed: stored.removed + 1 }));
    await Promise.all([add(), add(), add()]);
    expect((await records.loadPicture("job"))?.removed).toBe(3);
    expect(await records.updatePicture("job", () => undefined)).toBeUndefined();
    expect((await records.loadPicture("job"))?.removed).toBe(3);
  });

  test("records of image turns are found by their person, and erased with their files but without other people's", async () => {
    const { records, erasedFiles, stored } = open();
    await records.savePicture(structuredClone(turn));
    await records.savePicture(pictureTurn({ id: "other", author: ben }));
    expect((await records.readPictures({ platform: "test", id: "ada" })).map(({ id }) => id)).toEqual(["job"]);
    await records.forget("test", "ada");
    expect(await records.readPictures({ platform: "test", id: "ada" })).toEqual([]);
    expect((await records.loadPicture("other"))?.id).toBe("other");
    expect(erasedFiles.splice(0)).toEqual(["all of test ada", "job"]);
    await records.erasePictures({ conversation: turn.conversationId });
    expect(erasedFiles).toEqual(["other"]);
    expect(await Array.fromAsync(stored.iterator?.(undefined) ?? [])).toEqual([]);
  });
});
