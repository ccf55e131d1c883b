import type { Logger } from "pino";
import { z } from "zod";
import { persist } from "../concurrency/retry.ts";
import type { Author, InboundEvent, MessageEvent, ReplyAddress } from "../port/events.ts";
import { toTurnId } from "../port/ids.ts";
import { replyRecord } from "../reply/messages.ts";
import { toKeyPart, toOwnerKey } from "../store/key-part.ts";
import type { Stores } from "../store/keyv.ts";
import { walk } from "../store/values.ts";
import { toLedgerKeys } from "../tools/ledger.ts";
import { type Sight, sight } from "./sight.ts";

/** Survives a crash, and serves the buttons afterwards. Holds text only while the answer is written. */
export type TurnRecord = z.infer<typeof turnRecord>;

export type Feedback = z.infer<typeof feedback>;

const feedback = z.enum(["good", "bad"]);
/** The port declares these two: what it adds to them is kept as it is. */
const author: z.ZodType<Author> = z.looseObject({ id: z.string(), name: z.string() });
const reply: z.ZodType<ReplyAddress> = z.looseObject({ platform: z.string(), channelId: z.string() });

/** The oldest records lack the fields that have a default. */
const turnRecord = replyRecord.extend({
  v: z.literal(1),
  conversationId: z.string(),
  reply,
  /** The person who asked, and who may press the reply's buttons. */
  author,
  /** The messages that are answered together. */
  messageIds: z.array(z.string()),
  phase: z.enum(["received", "posted", "final"]),
  /** Beginnings of the turn without an end. */
  attempts: z.number(),
  /** Its end, once it is there, offers to ask again. */
  canRetry: z.boolean().default(false),
  /** Its end offers to go on where it was cut off. */
  canContinue: z.boolean().default(false),
  /** The number of the answer that is written or stands there, see `HistoryEntry.edition`. */
  edition: z.int().default(1),
  /** The place took no more of it at some point, so that its last message may look as if more were to come. */
  isRefused: z.boolean().exactOptional(),
  /** Outcomes of its ends so far; several when people have it begin anew. Absent before the first. */
  ends: z.array(z.string()).exactOptional(),
  /** Its end asks a person to allow calls of tools; when they decide, it goes on. */
  waits: z.literal(true).exactOptional(),
  /** Pictures and the like that the turn made before this attempt, besides the answer; absent: none. */
  made: z.number().exactOptional(),
  /** Ids of what this attempt made so far, in order; absent: nothing. */
  pieces: z.array(z.string()).exactOptional(),
  /** People's judgements of the answer, by their id; the latest word of each counts. */
  feedback: z.record(z.string(), feedback).exactOptional(),
  /** Reasons given with the judgements. */
  reasons: z.record(z.string(), z.string()).exactOptional(),
  /** The edition that each person judged, if not the first. */
  judged: z.record(z.string(), z.int()).exactOptional(),
});

/** Names the turn that is writing a message. */
const postedBy = z.object({ conversationId: z.string(), turnId: z.string() }).partial();

export interface TurnRecords {
  load(id: string): Promise<TurnRecord | undefined>;
  /** The conversation of an answer that is being written, maybe by another process, by one of its messages. */
  conversationOf(messageId: string): Promise<string | undefined>;
  /** The turn of that answer. */
  turnOf(messageId: string): Promise<string | undefined>;
  /** The turn that answers a person's message, or has answered it. */
  answerTo(messageId: string): Promise<TurnRecord | undefined>;
  /** The conversation in which a person's newest question of one place is being answered, maybe by another process. */
  answeredAt(place: ReplyAddress, authorId: string): Promise<string | undefined>;
  /**
   * Saves a record, and the sight of its answer. Resolves to whether they are stored; failures are logged. `pausesMs`
   * are the waits before further attempts, if not the usual ones.
   */
  save(record: TurnRecord, sight?: Sight, pausesMs?: readonly number[]): Promise<boolean>;
  /** Saves how far the text of a reply has come: a record whose messages and owner are saved already. */
  note(record: TurnRecord): Promise<void>;
  readSight(id: string): Promise<Sight | undefined>;
  /** Reads what the model was given for the answers to a person, by their turns; `within` as below. */
  readSights(platform: string, authorId: string, within?: string): Promise<Array<{ turnId: string; given: Sight }>>;
  /**
   * Notes what a person thinks of one edition of a turn's answer, and why. It replaces what they thought of another
   * edition. Without a reason the one they gave for the same judgement stays. Resolves to what is kept and new.
   */
  rate(
    answer: Pick<TurnRecord, "id" | "edition">,
    authorId: string,
    feedback: Feedback,
    reason?: string,
  ): Promise<Rated>;
  /** Reads a person's judgements of answers. `within`, here and below: of conversations whose ids begin like this. */
  readFeedback(platform: string, authorId: string, within?: string): Promise<Judgement[]>;
  /** Erases what the model was given for an answer, and the calls of its tools. The record stays. */
  eraseGiven(id: string): Promise<void>;
  /** Erases records, those of them that there are. */
  erase(ids: readonly string[]): Promise<void>;
  /** Erases the records of all conversations whose ids begin like this. Resolves to where their replies stand. */
  eraseConversations(prefix: string): Promise<ReplyAddress[]>;
  /** Erases the records of one person's turns, and what that person thinks of the answers to others. */
  forget(platform: string, authorId: string, within?: string): Promise<void>;
}

interface Value {
  key: string;
  value: unknown;
  ttl: number;
}

export interface Judgement {
  turnId: string;
  feedback: Feedback;
  reason?: string;
  /** Absent for the first. */
  edition?: number;
}

export interface Rated {
  isNew: boolean;
  hasNewReason: boolean;
}

const NOT_RATED: Rated = { isNew: false, hasNewReason: false };

export const TURNS = "turns";
/** Longest that calls of tools wait for a person. */
export const MAX_WAIT_MS = 86_400_000;
/** Longer than an answer is written; after that the history knows its messages. */
const POSTED_TTL_MS = 3_600_000;

export interface TurnRecordsOptions extends Pick<Stores, "open" | "inTurn"> {
  ttlMs: number;
  log: Logger;
}

/** Records by id, and for each person two namespaces: one names their turns, one those that they judged. */
export function createTurnRecords({ open, ttlMs, log, ...stores }: TurnRecordsOptions): TurnRecords {
  const keyv = open(TURNS);
  // Two people who judge one answer at once must not replace each other's word.
  const inTurn = <T>(id: string, task: () => Promise<T>) => stores.inTurn(`${TURNS}:${id}`, task);

  async function load(id: string): Promise<TurnRecord | undefined> {
    return readTurnRecord(await keyv.get(id));
  }

  async function loadNamed(key: string): Promise<TurnRecord | undefined> {
    const { turnId } = postedBy.safeParse(await keyv.get(key)).data ?? {};
    return turnId === undefined ? undefined : load(turnId);
  }

  function store(record: TurnRecord, others: readonly Value[], pausesMs?: readonly number[]): Promise<boolean> {
    const turnId = record.id;
    return persist(
      // As it stands at each try: one that comes late must not put an older state over a newer one.
      () => keyv.setMany([{ key: turnId, value: toStored(record), ttl: ttlMs }, ...others]),
      (err) => log.warn({ err, turnId }, "the record of a turn could not be stored"),
      pausesMs,
    );
  }

  async function readPosted(messageId: string): Promise<z.infer<typeof postedBy>> {
    const found: unknown = await keyv.get(toPosted(messageId));
    // Until it named the turn as well, it was the conversation alone.
    return postedBy.safeParse(typeof found === "string" ? { conversationId: found } : found).data ?? {};
  }

  /** Ids of the turns that a namespace names. */
  async function* idsOf(namespace: string, within?: string): AsyncGenerator<string> {
    for await (const [id] of walk(open(`${TURNS}:${namespace}`))) {
      if (within === undefined || (await load(id))?.conversationId.startsWith(within) === true) yield id;
    }
  }

  async function readSight(id: string): Promise<Sight | undefined> {
    return sight.safeParse(await keyv.get(toSightKey(id))).data;
  }

  async function takeBack(id: string, rater: string, authorId: string): Promise<void> {
    const record = await load(id);
    if (record?.feedback?.[authorId] !== undefined) await keyv.set(id, withoutFeedback(record, authorId), ttlMs);
    await keyv.delete(`${rater}:${id}`);
  }

  return {
    load,
    conversationOf: async (messageId) => (await readPosted(messageId)).conversationId,
    turnOf: async (messageId) => (await readPosted(messageId)).turnId,
    answerTo: (messageId) => loadNamed(toAsked(messageId)),
    async answeredAt(place, authorId) {
      const record = await loadNamed(toNewest(place, authorId));
      return record?.phase === "final" ? undefined : record?.conversationId;
    },
    async save(record, seen, pausesMs) {
      const sights = seen === undefined ? [] : [{ key: toSightKey(record.id), value: seen, ttl: ttlMs }];
      return store(record, [...toPointers(record, ttlMs), ...sights], pausesMs);
    },
    readSight,
    async readSights(platform, authorId, within) {
      const turnIds = await Array.fromAsync(idsOf(toOwnerKey(platform, authorId), within));
      const sights = await Promise.all(turnIds.map(async (turnId) => ({ turnId, given: await readSight(turnId) })));
      return sights.flatMap(({ turnId, given }) => (given === undefined ? [] : { turnId, given }));
    },
    note: async (record) => void (await store(record, [])),
    rate: ({ id, edition }, authorId, feedback, reason) =>
      inTurn(id, async () => {
        const record = await load(id);
        if (record === undefined) return NOT_RATED;
        const { rated, ...news } = toRated(record, authorId, { feedback, reason, edition });
        if (!news.isNew && !news.hasNewReason) return NOT_RATED;
        const pointers = toPointers(rated, ttlMs, toRater(record.reply.platform, authorId));
        return (await store(rated, pointers)) ? news : NOT_RATED;
      }),
    async readFeedback(platform, authorId, within) {
      const judgements: Judgement[] = [];
      for await (const turnId of idsOf(toRater(platform, authorId), within)) {
        judgements.push(...toJudgements(await load(turnId), authorId));
      }
      return judgements;
    },
    eraseGiven: async (id) => void (await keyv.deleteMany([toSightKey(id), ...toLedgerKeys(id)])),
    async erase(ids) {
      for (const id of ids) {
        const record = await load(id);
        if (record !== undefined) await keyv.deleteMany(keysOf(record));
      }
    },
    async eraseConversations(prefix) {
      const places: ReplyAddress[] = [];
      for await (const [, value] of walk(keyv)) {
        const record = readTurnRecord(value);
        if (record?.conversationId.startsWith(prefix) !== true) continue;
        await keyv.deleteMany(keysOf(record));
        places.push(record.reply);
      }
      return places;
    },
    async forget(platform, authorId, within) {
      const [owner, rater] = [toOwnerKey(platform, authorId), toRater(platform, authorId)];
      for await (const id of idsOf(owner, within)) {
        const record = await load(id);
        const kept = record === undefined ? [] : keysOf(record);
        await keyv.deleteMany([id, `${owner}:${id}`, toSightKey(id), ...toLedgerKeys(id), ...kept]);
      }
      for await (const id of idsOf(rater, within)) await inTurn(id, () => takeBack(id, rater, authorId));
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
  // A reason is one for the judgement it was given with.
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

/** Whoever reads that nothing was posted yet has to look for a first message that may be under way. */
function toStored(record: TurnRecord): TurnRecord {
  const mayPost = record.phase === "received" && record.posted.length === 0;
  return mayPost ? { ...record, isPosting: true } : record;
}

/** The keys under which a record stays or is found after its turn. */
function keysOf({ id, reply, author, messageIds }: TurnRecord): string[] {
  const found = [`${toOwnerKey(reply.platform, author.id)}:${id}`, toNewest(reply, author.id)];
  return [id, toSightKey(id), ...toLedgerKeys(id), ...found, ...messageIds.map(toAsked)];
}

function toSightKey(id: string): string {
  return `sight:${id}`;
}

function toAsked(messageId: string): string {
  return `asked:${toKeyPart(messageId)}`;
}

/** Keys under which a record is found, beside its own id. */
function toPointers(record: TurnRecord, ttlMs: number, rater?: string): Value[] {
  const { id, author, reply, phase, posted, messageIds, conversationId } = record;
  return [
    ...(phase === "final" ? [] : posted).map((messageId) => {
      return { key: toPosted(messageId), value: { turnId: id, conversationId }, ttl: POSTED_TTL_MS };
    }),
    // Once in a turn: its questions and its place stay.
    ...(phase === "received" ? messageIds : []).map((messageId) => {
      return { key: toAsked(messageId), value: { turnId: id }, ttl: ttlMs };
    }),
    ...(phase === "received" ? [{ key: toNewest(reply, author.id), value: { turnId: id }, ttl: POSTED_TTL_MS }] : []),
    ...[toOwnerKey(reply.platform, author.id), ...(rater === undefined ? [] : [rater])].map((of) => ({
      key: `${of}:${id}`,
      value: 1,
      ttl: ttlMs,
    })),
  ];
}

function toPosted(messageId: string): string {
  return `posted:${toKeyPart(messageId)}`;
}

/** Names a person in a place: threads of a channel are the same place. */
function toNewest({ platform, workspaceId = "", channelId }: ReplyAddress, authorId: string): string {
  return ["newest", platform, workspaceId, channelId, authorId].map(toKeyPart).join(":");
}

function toRater(platform: string, authorId: string): string {
  return `rated:${toKeyPart(platform)}:${toKeyPart(authorId)}`;
}

/** The record of a turn that nothing was done for yet. The events begin with a message, which may be deleted. */
export function newRecord(events: readonly InboundEvent[], messages: readonly MessageEvent[]): TurnRecord {
  const [first] = events;
  const last = messages.at(-1) ?? first;
  if (first === undefined || last === undefined) throw new TypeError("A turn begins with a message.");
  return {
    v: 1,
    id: toTurnId(first.key),
    conversationId: last.conversationId,
    reply: last.reply,
    author: last.author,
    messageIds: messages.map(({ messageId }) => messageId),
    posted: [],
    removed: 0,
    isPosting: false,
    phase: "received",
    attempts: 0,
    seen: 0,
    edition: 1,
    canRetry: false,
    canContinue: false,
  };
}

/** Undefined for what is damaged, or of another version. */
function readTurnRecord(value: unknown): TurnRecord | undefined {
  return turnRecord.safeParse(value).data;
}
