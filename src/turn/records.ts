import { randomBytes } from "node:crypto";
import type { Logger } from "pino";
import { z } from "zod";
import { persist } from "../concurrency/retry.ts";
import type { ReplyAddress } from "../port/events.ts";
import { source } from "../port/source.ts";
import type { Services } from "../services/services.ts";
import { toKeyPart } from "../store/key-part.ts";
import type { Entries, Stores } from "../store/keyv.ts";
import type { Belonging, OwnedEntry, Owner } from "../store/owned.ts";
import { type Ledger, toLedgerKeys } from "../tools/ledger.ts";
import {
  type Feedback,
  isPictureTurn,
  type PictureTurn,
  readTurnRecord,
  type Trace,
  type TurnRecord,
} from "./record.ts";

/** Stores files of picture turns outside their records: copies of pictures, and links to them. */
export interface PictureFiles {
  erase(turn: PictureTurn): Promise<void>;
  forget(platform: string, authorId: string): Promise<void>;
}

const postedBy = z.object({ conversationId: z.string(), turnId: z.string() }).partial();

interface PictureRecords {
  loadPicture(id: string): Promise<PictureTurn | undefined>;
  /** Resolves to false only if the turn was erased. The turn then stays erased. */
  savePicture(turn: PictureTurn): Promise<boolean>;
  /**
   * Replaces the record of a picture turn under a lock, unless `update` returns undefined. Resolves to the result of
   * `update`. Rejects if the store is unavailable.
   */
  updatePicture(id: string, update: UpdatePicture): Promise<PictureTurn | undefined>;
  readPictures(owner: Owner): Promise<PictureTurn[]>;
  erasePicture(turn: PictureTurn): Promise<void>;
  /** Erases picture turns with their files. Resolves to the erased turns. */
  erasePictures(of: Belonging): Promise<PictureTurn[]>;
}

export interface TurnRecords extends PictureRecords {
  /** Loads the record of an answer. Resolves to undefined for a picture turn too. */
  load(id: string): Promise<TurnRecord | undefined>;
  /** Finds the conversation of an answer that any process is writing, by one of the answer's messages. */
  conversationOf(messageId: string): Promise<string | undefined>;
  /** Finds the turn of an answer that any process is writing, by one of the answer's messages. */
  turnOf(messageId: string): Promise<string | undefined>;
  /** Finds the turn that answers, or has answered, this question. */
  answerTo(messageId: string): Promise<TurnRecord | undefined>;
  /** Finds the conversation in which some process is answering the person's newest question in this channel. */
  answeredAt(place: ReplyAddress, authorId: string): Promise<string | undefined>;
  /**
   * Stores a record. Resolves to true if that worked. Logs failures. `pausesMs` replaces the usual pauses before
   * retries.
   */
  save(record: TurnRecord, pausesMs?: readonly number[]): Promise<boolean>;
  /**
   * Stores the record at the start of an attempt. Notes of earlier attempts then no longer count. Resolves like `save`.
   */
  begin(record: TurnRecord): Promise<boolean>;
  /** Updates a stored record. An erased record stays erased. */
  note(record: TurnRecord): Promise<void>;
  /** Notes how much of the text people can have seen. If this process has lost the turn, the note is never read. */
  noteShownText(record: TurnRecord): Promise<void>;
  readTraces(platform: string, authorId: string): Promise<Array<{ turnId: string; given: Trace }>>;
  /**
   * Stores a person's rating of one edition. It replaces the person's rating of another edition. Repeating the same
   * rating without a reason keeps the old reason. Resolves to whether the rating and the reason are new.
   */
  rate(
    answer: Pick<TurnRecord, "id" | "edition">,
    authorId: string,
    feedback: Feedback,
    reason?: string,
  ): Promise<Rated>;
  readFeedback(platform: string, authorId: string): Promise<Judgement[]>;
  /** Erases a turn's tool calls, but not its record. */
  eraseCalls(id: string): Promise<void>;
  /** Erases the records of a person's turns, and the person's ratings of other people's answers. */
  forget(platform: string, authorId: string): Promise<void>;
}

type UpdatePicture = (stored: PictureTurn | undefined) => PictureTurn | undefined;

interface Judgement {
  turnId: string;
  feedback: Feedback;
  reason?: string;
  /** Absent if the person rated the first edition. */
  edition?: number;
}

interface Rated {
  isNew: boolean;
  hasNewReason: boolean;
}

const NOT_RATED: Rated = { isNew: false, hasNewReason: false };

export const TURNS = "turns";
const RATED = "rated:";
const NEWEST_TURNS = 20;

/**
 * How long an answer that is not in the history yet can be found by its messages. Writing an answer takes less time.
 */
const POSTED_TTL_MS = 3_600_000;

export interface TurnServices extends Services {
  records: TurnRecords;
  ledger: Ledger;
}

interface TurnRecordsOptions extends Pick<Stores, "open" | "inTurn"> {
  ttlMs: number;
  files: PictureFiles;
  log: Logger;
}

function openRecordStore({ open, ttlMs, files, log, ...stores }: TurnRecordsOptions) {
  const keyv = open(TURNS);
  // Runs a task under the turn's lock, so that people who rate at the same time cannot overwrite each other's ratings.
  const inTurn = <T>(id: string, task: (keyv: Entries) => Promise<T>) =>
    stores.inTurn(`${TURNS}:${id}`, (open) => task(open(TURNS)));

  async function loadAny(id: string): Promise<TurnRecord | PictureTurn | undefined> {
    const value = await keyv.get<unknown>(id);
    const record = readTurnRecord(value);
    if (value !== undefined && record === undefined) log.error({ turnId: id }, "the record of a turn cannot be read");
    return record;
  }

  /**
   * Stores a record, with retries. `write` must write the current state, so that a retry cannot overwrite a newer one.
   */
  function store(
    { id: turnId }: TurnRecord,
    write: () => Promise<unknown>,
    pausesMs?: readonly number[],
  ): Promise<boolean> {
    return persist(write, (err) => log.warn({ err, turnId }, "the record of a turn could not be stored"), pausesMs);
  }

  async function readOf(of: Belonging): Promise<Array<TurnRecord | PictureTurn>> {
    const records = await Array.fromAsync(keyv.entriesOf(of), ([, value]) => readTurnRecord(value));
    return records.filter((record) => record !== undefined);
  }

  return { keyv, ttlMs, files, inTurn, loadAny, readOf, store };
}

function createPictureRecords(records: ReturnType<typeof openRecordStore>): PictureRecords {
  const { keyv, ttlMs, files, inTurn, loadAny, store } = records;
  /** Turns that were in the store. If the store no longer has one of them, the turn was erased. */
  const stored = new WeakSet<PictureTurn>();

  async function loadPicture(id: string): Promise<PictureTurn | undefined> {
    const record = await loadAny(id);
    if (record === undefined || !isPictureTurn(record)) return undefined;
    stored.add(record);
    return record;
  }

  /** Resolves to false if the turn was erased. */
  async function putPicture(turn: PictureTurn, writer: Entries): Promise<boolean> {
    const entry = { ...toEntry(turn), ttlMs, ...(stored.has(turn) && { isRewrite: true as const }) };
    const isKept = await writer.write([entry, ...toPointers(turn, ttlMs)]);
    if (isKept) stored.add(turn);
    return isKept;
  }

  async function readPictures(of: Belonging): Promise<PictureTurn[]> {
    return (await records.readOf(of)).filter(isPictureTurn);
  }

  /** Erases the files before the record, because an interrupted erasure needs the record to start again. */
  async function erase(turn: PictureTurn): Promise<void> {
    await files.erase(turn);
    await inTurn(turn.id, (keyv) => keyv.deleteMany([turn.id, ...toPointers(turn, ttlMs).map(({ key }) => key)]));
  }

  return {
    loadPicture,
    async savePicture(turn) {
      let isKept = true;
      await store(turn, async () => void (isKept = await putPicture(turn, keyv)));
      return isKept;
    },
    updatePicture: (id, update) =>
      inTurn(id, async (keyv) => {
        const updated = update(await loadPicture(id));
        if (updated !== undefined) await putPicture(updated, keyv);
        return updated;
      }),
    readPictures: (owner) => readPictures({ owner }),
    erasePicture: erase,
    async erasePictures(of) {
      const turns = await readPictures(of);
      for (const turn of turns) await erase(turn);
      return turns;
    },
  };
}

/**
 * Creates the store of records. A record belongs to its asker. A pointer to a rating belongs to the person who rated.
 */
export function createTurnRecords(options: TurnRecordsOptions): TurnRecords {
  const { ttlMs, files } = options;
  const records = openRecordStore(options);
  const { keyv, inTurn, loadAny, store } = records;
  const pictures = createPictureRecords(records);

  const notes = createNotes(records);

  async function load(id: string): Promise<TurnRecord | undefined> {
    const record = await loadAny(id);
    return record === undefined || isPictureTurn(record) ? undefined : notes.read(record);
  }

  async function loadNamed(key: string): Promise<TurnRecord | undefined> {
    const { turnId } = postedBy.safeParse(await keyv.get(key)).data ?? {};
    return turnId === undefined ? undefined : load(turnId);
  }

  async function readPosted(messageId: string): Promise<z.infer<typeof postedBy>> {
    return postedBy.safeParse(await keyv.get(toPosted(messageId))).data ?? {};
  }

  async function ratedBy(platform: string, id: string): Promise<string[]> {
    const keys = await keyv.keysOf({ platform, id });
    return keys.filter((key) => key.startsWith(RATED)).map((key) => key.slice(RATED.length).split(":", 1)[0] ?? "");
  }

  async function takeBack(keyv: Entries, id: string, authorId: string): Promise<void> {
    const record = await load(id);
    if (record?.feedback?.[authorId] === undefined) return;
    await keyv.put({ ...toEntry(withoutFeedback(record, authorId)), isRewrite: true });
  }

  return {
    ...pictures,
    load,
    conversationOf: async (messageId) => (await readPosted(messageId)).conversationId,
    turnOf: async (messageId) => (await readPosted(messageId)).turnId,
    answerTo: (messageId) => loadNamed(toAsked(messageId)),
    async answeredAt(place, authorId) {
      const keys = (await keyv.keysOf({ platform: place.platform, id: authorId })).filter((key) => !key.includes(":"));
      const values = await keyv.getMany<unknown>(keys.slice(-NEWEST_TURNS));
      const isThere = (record: TurnRecord | undefined) =>
        record !== undefined && !isPictureTurn(record) && toPlace(record.reply) === toPlace(place);
      const newest = values.map(readTurnRecord).findLast(isThere);
      return newest?.phase === "final" ? undefined : newest?.conversationId;
    },
    async save(record, pausesMs) {
      const pointers = toPointers(record, ttlMs);
      const over = record.phase === "final" && record.noter !== undefined ? [toSaidKey(record.id)] : [];
      const write = async () => {
        const entry = toEntry(record);
        const isThere = record.noter !== undefined && record.phase !== "received";
        // The record keeps the expiry time that `begin` set.
        if (isThere && (await keyv.write([{ ...entry, isRewrite: true }, ...pointers], over))) return;
        await keyv.write([{ ...entry, ttlMs }, ...pointers], over);
      };
      return store(record, write, pausesMs);
    },
    async begin(record) {
      const list = notes.begin(record);
      return store(record, () => keyv.write([{ ...toEntry(record), ttlMs }, list, ...toPointers(record, ttlMs)]));
    },
    noteShownText: async (record) => void (await store(record, () => notes.add(record))),
    async readTraces(platform, authorId) {
      const own = await records.readOf({ owner: { platform, id: authorId } });
      return own.flatMap(({ id, trace }) => (trace === undefined ? [] : { turnId: id, given: trace }));
    },
    note: async (record) => void (await store(record, () => keyv.put({ ...toEntry(record), isRewrite: true }))),
    rate: ({ id, edition }, authorId, feedback, reason) =>
      inTurn(id, async (keyv) => {
        const record = await load(id);
        if (record === undefined) return NOT_RATED;
        const { rated, ...news } = toRated(record, authorId, { feedback, reason, edition });
        if (!news.isNew && !news.hasNewReason) return NOT_RATED;
        const owner = { platform: record.reply.platform, id: authorId };
        const pointer = { key: `${RATED}${id}:${toKeyPart(authorId)}`, value: 1, ttlMs, owner };
        const write = () => keyv.write([{ ...toEntry(rated), ttlMs }, ...toPointers(rated, ttlMs), pointer]);
        return (await store(rated, write)) ? news : NOT_RATED;
      }),
    async readFeedback(platform, authorId) {
      const judgements: Judgement[] = [];
      for (const turnId of await ratedBy(platform, authorId)) {
        judgements.push(...toJudgements(await load(turnId), authorId));
      }
      return judgements;
    },
    eraseCalls: async (id) => void (await keyv.deleteMany(toLedgerKeys(id))),
    async forget(platform, authorId) {
      await files.forget(platform, authorId);
      await pictures.erasePictures({ owner: { platform, id: authorId } });
      for (const id of await ratedBy(platform, authorId)) {
        await inTurn(id, (keyv) => takeBack(keyv, id, authorId));
      }
      await keyv.eraseOf({ owner: { platform, id: authorId } });
    },
  };
}

const noteOfText = z.object({
  noter: z.string(),
  number: z.int(),
  seen: z.number(),
  /** The position of `text` in the whole text. Absent if no process can continue the answer. */
  from: z.int().exactOptional(),
  text: z.string().exactOptional(),
  isWhole: z.boolean().exactOptional(),
  /** Absent if the pages are the same as in the previous note. */
  cited: z.array(source).exactOptional(),
});

/**
 * Stores notes about answers that are being written: one list per record. A note has only the text since the last note
 * that is certainly stored, so each note is small even if the answer is long.
 */
function createNotes({ keyv }: ReturnType<typeof openRecordStore>) {
  /** The text and pages in the last note that is certainly stored. */
  const stored = new WeakMap<TurnRecord, Pick<TurnRecord, "shownText" | "cited">>();

  return {
    /** Gives the attempt a new id, so that notes from all other processes no longer count. */
    begin(record: TurnRecord): OwnedEntry {
      Object.assign(record, { noter: randomBytes(6).toString("base64url"), noted: 0 });
      stored.set(record, { ...record });
      return { key: toSaidKey(record.id), value: null, isList: true, ttlMs: POSTED_TTL_MS, ...belongingOf(record) };
    },
    async add(record: TurnRecord): Promise<void> {
      const { noter, shownText, seen, isShownWhole, cited = [], noted = 0 } = record;
      if (noter === undefined) return;
      const { shownText: before = "", cited: citedBefore = [] } = stored.get(record) ?? {};
      const from = shownText?.startsWith(before) === true ? before.length : 0;
      const isCitedAsBefore = JSON.stringify(cited) === JSON.stringify(citedBefore);
      record.noted = noted + 1;
      const text =
        shownText === undefined ? {} : { from, text: shownText.slice(from), ...(isShownWhole && { isWhole: true }) };
      const note = { noter, number: record.noted, seen, ...text, ...(!isCitedAsBefore && { cited }) };
      if (await keyv.append(toSaidKey(record.id), note)) stored.set(record, { shownText: shownText ?? "", cited });
    },
    async read(record: TurnRecord): Promise<TurnRecord> {
      if (record.noter === undefined || record.phase === "final") return record;
      for (const value of await keyv.readAppended(toSaidKey(record.id))) {
        const note = noteOfText.safeParse(value).data;
        if (note === undefined || note.noter !== record.noter || note.number <= (record.noted ?? 0)) continue;
        const { number, seen, from = 0, text, isWhole, cited } = note;
        if (from > (record.shownText ?? "").length) continue;
        Object.assign(record, { noted: number, seen, ...(cited !== undefined && { cited }) });
        const shownText = text === undefined ? undefined : (record.shownText ?? "").slice(0, from) + text;
        delete record.isShownWhole;
        if (shownText === undefined) delete record.shownText;
        else Object.assign(record, { shownText, isShownWhole: isWhole === true });
      }
      return record;
    },
  };
}

function toJudgements(record: TurnRecord | undefined, authorId: string): Judgement[] {
  const [feedback, reason] = [record?.feedback?.[authorId], record?.reasons?.[authorId]];
  if (record === undefined || feedback === undefined) return [];
  const edition = record.judged?.[authorId];
  return [
    { turnId: record.id, feedback, ...(reason !== undefined && { reason }), ...(edition !== undefined && { edition }) },
  ];
}

interface Word {
  feedback: Feedback;
  reason: string | undefined;
  edition: number;
}

function toRated(record: TurnRecord, authorId: string, { feedback, reason, edition }: Word) {
  const isNew = record.feedback?.[authorId] !== feedback || (record.judged?.[authorId] ?? 1) !== edition;
  const hasNewReason = reason !== undefined && record.reasons?.[authorId] !== reason;
  // A new rating drops the person's earlier reason, which belongs to the earlier rating.
  const others = isNew ? withoutFeedback(record, authorId) : record;
  const rated: TurnRecord = {
    ...others,
    feedback: { ...others.feedback, [authorId]: feedback },
    ...(reason !== undefined && { reasons: { ...others.reasons, [authorId]: reason } }),
    ...(edition > 1 && { judged: { ...others.judged, [authorId]: edition } }),
  };
  return { rated, isNew, hasNewReason };
}

function withoutFeedback({ feedback, reasons, judged, ...record }: TurnRecord, authorId: string): TurnRecord {
  const { [authorId]: _, ...others } = feedback ?? {};
  const { [authorId]: __, ...reasonsOfOthers } = reasons ?? {};
  const { [authorId]: ___, ...judgedByOthers } = judged ?? {};
  return {
    ...record,
    feedback: others,
    ...(reasons && { reasons: reasonsOfOthers }),
    ...(judged && { judged: judgedByOthers }),
  };
}

/**
 * Marks a record without messages as possibly posting, because the first message can be in flight when another process
 * reads the record.
 */
function toStored(record: TurnRecord): TurnRecord {
  const mayPost = record.phase === "received" && record.posted.length === 0;
  return mayPost ? { ...record, isPosting: true } : record;
}

function toSaidKey(id: string): string {
  return `said:${id}`;
}

function toAsked(messageId: string): string {
  return `asked:${toKeyPart(messageId)}`;
}

function toEntry(record: TurnRecord): OwnedEntry {
  return { key: record.id, value: toStored(record), ...belongingOf(record) };
}

/**
 * Says with whose data the entry is erased: everything about a turn is erased with its asker, or with its conversation.
 */
function belongingOf({ reply: { platform }, author: { id }, conversationId }: TurnRecord) {
  return { owner: { platform, id }, conversation: conversationId };
}

/** Returns the other keys under which the record can be found. */
function toPointers(record: TurnRecord, ttlMs: number): OwnedEntry[] {
  const { id, phase, posted, messageIds, conversationId } = record;
  const common = { value: { turnId: id }, ...belongingOf(record) };
  return [
    ...(phase === "final" ? [] : posted).map((messageId) => {
      // This entry contains no person's id and expires after an hour, so no erasure has to find it.
      return { key: toPosted(messageId), value: { turnId: id, conversationId }, ttlMs: POSTED_TTL_MS };
    }),
    // Written only when the turn starts, because its questions and its channel do not change.
    ...(phase === "received" ? messageIds : []).map((messageId) => ({ ...common, key: toAsked(messageId), ttlMs })),
  ];
}

function toPosted(messageId: string): string {
  return `posted:${toKeyPart(messageId)}`;
}

/** Returns the key of a channel. A thread has the key of its parent channel. */
function toPlace({ platform, workspaceId = "", channelId }: ReplyAddress): string {
  return [platform, workspaceId, channelId].map(toKeyPart).join(":");
}
