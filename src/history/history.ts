import { setImmediate } from "node:timers/promises";
import type { Logger } from "pino";
import type { KeyedQueue } from "../concurrency/keyed-queue.ts";
import { textOf } from "../gateway/chunks.ts";
import type { AttachmentRef } from "../port/events.ts";
import { readKeyPart } from "../store/key-part.ts";
import type { Stores } from "../store/keyv.ts";
import { type AuthorCount, type AuthorExport, createAuthorRecords } from "./authors.ts";
import { createHistoryKeys, type Erasure, type HistoryKeys, type Place } from "./keys.ts";
import {
  type ErasedEntry,
  type Head,
  type HistoryEntry,
  type Position,
  type StoredEntry,
  toAuthorKey,
  toAuthorKeys,
  toDeletedKey,
  toEntryKey,
  toHeadKey,
  toIndexKey,
} from "./record.ts";

/** More than can be appended in a millisecond. */
const SEQS_PER_MS = 1_000;
const PAGE_ENTRIES = 100;

/**
 * Conversations. One conversation has one writer at a time: the queue gives each conversation to one worker, and no
 * other process may write to it meanwhile. Conversations never disturb each other. Every promise rejects when the
 * store does not answer: nothing is ever taken for empty because it could not be read. A stored value that is
 * damaged, or of another version, counts as absent. Everything is kept for `ttlMs` after it was appended.
 */
export interface History {
  /**
   * Appends an entry at the end, together with everything that finds it, or nothing of it. Costs the same whatever
   * the length of the conversation. An entry whose id is there is replaced where it stands. `aliases` are further
   * message ids that find it, such as those of the messages an answer was posted in; earlier ones stay. `after` finds
   * the entry that it continues: what was said since then is another branch. Without one that is known, a person's
   * message follows everything before it, and an answer follows the entry right before it.
   */
  append(conversationId: string, entry: HistoryEntry, aliases?: readonly string[], after?: string): Promise<void>;
  /**
   * Appends an answer long after it was given, unless it is there, or a later one. Where the entry it continues is not
   * there, what is `asked` comes first, if it was neither deleted nor erased. False: the answer continues nothing.
   */
  appendLate(conversationId: string, answer: Continuation, asked?: readonly Continuation[]): Promise<boolean>;
  /** Resolves to true when the conversation never had an entry. */
  isNew(conversationId: string): Promise<boolean>;
  /**
   * Until when what others said in the place of a conversation is here, or was erased, Unix milliseconds; `Infinity`
   * where nobody knows. undefined: nothing was ever brought in, and there never was an entry.
   */
  broughtUntil(conversationId: string): Promise<number | undefined>;
  /** Appends messages of others in the place until then, all or none, without those stored already. */
  bring(conversationId: string, entries: readonly HistoryEntry[], until: number): Promise<void>;
  /** The newest entry and those before it on its branch, oldest first. Cost grows with `maxEntries` alone. */
  read(conversationId: string, options: ReadOptions): Promise<{ entries: HistoryEntry[]; hasOlder: boolean }>;
  /** The entry that the conversation began with; undefined where it was erased. */
  readFirst(conversationId: string): Promise<HistoryEntry | undefined>;
  /** Finds the entry of a platform message, or of a turn. */
  find(messageId: string): Promise<{ conversationId: string; entryId: string } | undefined>;
  /** Changes a person's message; keeps it no longer than before. Resolves to false when there is none. */
  edit(messageId: string, text: string, attachments: AttachmentRef[]): Promise<boolean>;
  /** Erases the whole entry of a message: an answer that was posted in several goes with any of them. */
  remove(messageId: string): Promise<boolean>;
  /** Remembers for a day that a message is gone of which there is no entry: it may come after its deletion. */
  markDeleted(messageId: string): Promise<void>;
  /** The messages among these that were deleted before they came. */
  deletedOf(messageIds: readonly string[]): Promise<string[]>;
  /** True when the bot answers without being addressed: at the time `at`, Unix milliseconds, or at any time. */
  isFollowed(conversationId: string, at?: number): Promise<boolean>;
  /** `since` is when the message was written that makes the bot follow. Following what is followed changes nothing. */
  setFollowed(conversationId: string, followed: boolean, since?: number): Promise<void>;
  /** A person's messages and the answers to them. `within`, here and below: in conversations whose ids begin so. */
  exportAuthor(platform: string, authorId: string, within?: string): Promise<AuthorExport>;
  /** Costs as much as the person has entries, without reading them. */
  countAuthor(platform: string, authorId: string, within?: string): Promise<AuthorCount>;
  /** The ids of everybody of a platform whom an entry concerns. Reads the index of all of them. */
  listAuthors(platform: string): Promise<Set<string>>;
  /** The conversations that a person took part in, the one with the newest of theirs first. Costs the same. */
  conversationsOf(platform: string, authorId: string, within?: string): Promise<string[]>;
  /** Erases a person's messages, the answers to them and every index of both. Resolves to the number of entries. */
  forgetAuthor(platform: string, authorId: string, within?: string): Promise<number>;
  /** Erases a person's messages and their answers, or everything. Resolves to the ids of the erased entries. */
  forgetConversation(conversationId: string, person?: { platform: string; id: string }): Promise<string[]>;
  /** Ids of all conversations that begin like this. Costs as much as there are conversations. */
  conversations(prefix: string): AsyncIterable<string>;
}

/** What `append` takes. */
export interface Continuation {
  entry: HistoryEntry;
  aliases?: readonly string[];
  after?: string | undefined;
}

export interface ReadOptions {
  maxEntries: number;
  /** Reading ends a few entries at most after this many characters. Absent: no bound. */
  maxChars?: number;
  /** Only what this entry follows; nothing when it is unknown. */
  beforeId?: string;
  /** Instead of `beforeId`: this entry itself, too. */
  upToId?: string;
}

export interface HistoryOptions extends Pick<Stores, "open" | "inTurn"> {
  ttlMs: number;
  log: Logger;
  /** Unix milliseconds. */
  now: () => number;
  /** Never goes back, see `Stores.now`: entries are numbered from it on. Absent: `now`. */
  clock?: () => number;
}

export function createHistory(options: HistoryOptions): History {
  const { open, ttlMs, log, now, clock = now, inTurn } = options;
  const keys = createHistoryKeys(open, ttlMs, log);

  return {
    append: (conversationId, entry, aliases = [], after) =>
      inTurn(conversationId, async () => {
        await append(keys, clock, { conversationId, entry, aliases, after });
      }),
    appendLate: (conversationId, answer, asked = []) =>
      inTurn(conversationId, async () => {
        const late = { ...answer, conversationId, isLate: true } as const;
        if (await append(keys, clock, late)) return true;
        const missing = await withoutErased(keys, conversationId, asked);
        for (const question of missing) await append(keys, clock, { ...question, conversationId });
        return missing.length > 0 && append(keys, clock, late);
      }),
    async isNew(conversationId) {
      const head = await keys.readHead(conversationId);
      return head === undefined || head.last < head.first;
    },
    broughtUntil: (conversationId) => readBroughtUntil(keys, conversationId),
    bring: (conversationId, entries, until) =>
      inTurn(conversationId, () => bring(keys, clock, { conversationId, entries, until })),
    read: (conversationId, options) => read(keys, conversationId, options),
    async readFirst(conversationId) {
      const head = await keys.readHead(conversationId);
      return head && (await keys.readEntry({ conversationId, seq: head.first }))?.entry;
    },
    async find(messageId) {
      const position = await keys.readPosition(messageId);
      return position && { conversationId: position.conversationId, entryId: position.entryId };
    },
    edit: (messageId, text, attachments) =>
      atPosition(keys, inTurn, messageId, async (position) => {
        const stored = await keys.readEntry(position);
        if (stored?.entry === undefined || stored.entry.author === undefined) return false;
        const [first, ...rest] = stored.entry.messages;
        if (first?.role !== "user") return false;
        const entry = { ...stored.entry, attachments, messages: [{ ...first, content: text }, ...rest] };
        await keys.rewriteEntry(position, { ...stored, entry });
        return true;
      }),
    remove: (messageId) =>
      atPosition(keys, inTurn, messageId, async (position) => {
        const stored = await keys.readEntry(position);
        const ids = [messageId, position.entryId];
        const left = { entryKey: toEntryKey(position), ids, authorKeys: [], after: stored?.after };
        await keys.erase([stored?.entry === undefined ? left : toErasure(position, stored)]);
        return stored?.entry !== undefined;
      }),
    markDeleted: keys.markDeleted,
    async deletedOf(messageIds) {
      const marks = await keys.getMany(messageIds.map(toDeletedKey));
      return messageIds.filter((_, index) => marks[index] !== undefined);
    },
    async isFollowed(conversationId, at = Infinity) {
      const head = await keys.readHead(conversationId);
      return head?.followed === true && at >= (head.followedSince ?? 0);
    },
    setFollowed: (conversationId, followed, since) =>
      inTurn(conversationId, async () => {
        const head = await keys.readHead(conversationId);
        if ((head?.followed ?? false) === followed) return;
        await keys.writeHead(conversationId, { ...(head ?? emptyHead(clock)), followed, followedSince: since });
      }),
    forgetConversation: (conversationId, person) =>
      inTurn(conversationId, () => eraseConversation(keys, now, conversationId, person)),
    async *conversations(prefix) {
      for await (const [part] of keys.walk("h")) {
        const conversationId = readKeyPart(part);
        if (conversationId?.startsWith(prefix)) yield conversationId;
      }
    },
    ...createAuthorRecords(keys, inTurn, now),
  };
}

async function read(keys: HistoryKeys, conversationId: string, options: ReadOptions) {
  const { maxEntries, maxChars, beforeId, upToId } = options;
  const none = { entries: [], hasOlder: false };
  const startId = upToId ?? beforeId;
  const [headKey, startKey] = [toHeadKey(conversationId), startId === undefined ? undefined : toIndexKey(startId)];
  const [head, start] = await keys.getMany(startKey === undefined ? [headKey] : [headKey, startKey]);
  const known = keys.readers.head(headKey, head);
  if (known === undefined || maxEntries < 1) return none;
  const newest = { conversationId, seq: known.last };
  const position = startKey === undefined ? newest : keys.readers.position(startKey, start);
  if (position?.conversationId !== conversationId) return none;
  const isLeftOut = startKey !== undefined && upToId === undefined;
  return readChain(keys, known, { conversationId, seq: position.seq, isLeftOut }, { maxEntries, maxChars });
}

/** Runs a change at the place of a message, once no other change of that conversation runs. */
async function atPosition(
  keys: HistoryKeys,
  inTurn: KeyedQueue["run"],
  messageId: string,
  change: (position: Position) => Promise<boolean>,
): Promise<boolean> {
  const found = await keys.readPosition(messageId);
  if (found === undefined) return false;
  return inTurn(found.conversationId, async () => {
    // It may have been erased while this waited.
    const position = await keys.readPosition(messageId);
    return position === undefined || toEntryKey(position) !== toEntryKey(found) ? false : change(position);
  });
}

interface Append extends Continuation {
  conversationId: string;
  /** Replaces nothing, and is only appended behind the entry it continues. */
  isLate?: true;
}

/** Appends an entry, or replaces it where it stands, on its old branch. Resolves to whether it is there. */
async function append(keys: HistoryKeys, now: () => number, appended: Append): Promise<boolean> {
  const { conversationId, entry, aliases = [], after, isLate } = appended;
  const headKey = toHeadKey(conversationId);
  const indexKeys = [entry.id, ...(after === undefined ? [] : [after])].map(toIndexKey);
  const [head, ...indexes] = await keys.getMany([headKey, ...indexKeys]);
  const known = keys.readers.head(headKey, head) ?? emptyHead(now);
  const [place, continued] = indexKeys.map((key, index) =>
    placeOf(keys.readers.position(key, indexes[index]), conversationId, known),
  );
  if (isLate && place === undefined && continued === undefined) return false;
  const old = place && (await keys.readEntry(place));
  // What stands there may be the answer to the question as it was before an edit.
  if (isLate && place !== undefined && !(old?.entry !== undefined && isLaterEnd(entry, old.entry))) return true;
  const seq = place?.seq ?? known.last + 1;
  const parent = old === undefined ? toParent(entry, seq, continued?.seq) : old.after;
  const allAliases = [...new Set([...(old?.entry === undefined ? [] : old.aliases), ...aliases])];
  const stored = { entry, aliases: allAliases, ...(parent !== undefined && { after: parent }) };
  const position = { conversationId, seq, entryId: entry.id };
  await keys.writeEntries([{ position, stored }], { ...known, last: Math.max(known.last, seq) });
  return true;
}

/** Those that were neither deleted before they came nor erased with all others of their place. */
async function withoutErased(
  keys: HistoryKeys,
  conversationId: string,
  said: readonly Continuation[],
): Promise<readonly Continuation[]> {
  const headKey = toHeadKey(conversationId);
  const [head, ...marks] = await keys.getMany([headKey, ...said.map(({ entry }) => toDeletedKey(entry.id))]);
  const { broughtUntil = -Infinity } = keys.readers.head(headKey, head) ?? {};
  return said.filter(({ entry }, index) => marks[index] === undefined && entry.at > broughtUntil);
}

function isLaterEnd({ end = 1 }: HistoryEntry, { end: before = 1 }: HistoryEntry): boolean {
  return end > before;
}

/** An answer follows the entry right before it anyway; a person's message says that it follows that one alone. */
function toParent({ author }: HistoryEntry, seq: number, continued: number | undefined): number | undefined {
  const isImplied = author === undefined && continued === seq - 1;
  return isImplied || (continued !== undefined && continued >= seq) ? undefined : continued;
}

interface Bring {
  conversationId: string;
  entries: readonly HistoryEntry[];
  until: number;
}

/** Leaves messages where they are that stand elsewhere already. */
async function bring(keys: HistoryKeys, now: () => number, { conversationId, entries, until }: Bring): Promise<void> {
  const headKey = toHeadKey(conversationId);
  const indexKeys = entries.map(({ id }) => toIndexKey(id));
  const [head, ...indexes] = await keys.getMany([headKey, ...indexKeys]);
  const known = keys.readers.head(headKey, head) ?? emptyHead(now);
  const unknown = entries.filter((_, index) => indexes[index] === undefined);
  const placed = unknown.map((entry, index) => ({
    position: { conversationId, seq: known.last + 1 + index, entryId: entry.id },
    stored: { entry, aliases: [] },
  }));
  const brought = { ...known, last: known.last + placed.length, broughtUntil: until };
  if (placed.length > 0) await keys.writeEntries(placed, brought);
  else await keys.writeHead(conversationId, brought);
}

async function readBroughtUntil(keys: HistoryKeys, conversationId: string): Promise<number | undefined> {
  const head = await keys.readHead(conversationId);
  if (head === undefined) return undefined;
  const { broughtUntil, first, last } = head;
  if (broughtUntil !== undefined) return broughtUntil;
  if (last < first) return undefined;
  // Conversations of before do not say.
  const newest = await keys.readEntry({ conversationId, seq: last });
  return newest?.entry?.at ?? Infinity;
}

/** The place of an entry that is stored already and can be seen, not one that an index left behind. */
function placeOf(position: Position | undefined, conversationId: string, head: Head): Position | undefined {
  if (position?.conversationId !== conversationId) return undefined;
  return position.seq >= head.first && position.seq <= head.last ? position : undefined;
}

/**
 * The head of a conversation of which nothing is known. Numbers begin at the clock and grow more slowly than it, so
 * entries which a lost head left behind have smaller ones than any that follow: never seen again, nor overwritten.
 */
function emptyHead(now: () => number): Head {
  const first = now() * SEQS_PER_MS;
  return { first, last: first - 1, followed: false };
}

/** An entry with everything that finds it. What continues it goes on with what it continued. */
function toErasure(place: Place, { entry, aliases, after }: StoredEntry): Erasure {
  const entryKey = toEntryKey(place);
  return { entryKey, ids: [entry.id, ...aliases], authorKeys: toAuthorKeys(entry, entryKey), after };
}

/** Erases a person's messages and their answers, or all; the history then exists without entries. Returns the ids. */
async function eraseConversation(
  keys: HistoryKeys,
  now: () => number,
  conversationId: string,
  person: { platform: string; id: string } | undefined,
): Promise<string[]> {
  const head = await keys.readHead(conversationId);
  if (head === undefined) return [];
  const erased: string[] = [];
  for (let from = head.first; from <= head.last; from += PAGE_ENTRIES) {
    const length = Math.min(PAGE_ENTRIES, head.last - from + 1);
    const places = Array.from({ length }, (_, offset) => ({ conversationId, seq: from + offset }));
    const found = await keys.readEntries(places);
    // Lets others go on: an embedded store answers without ever leaving this thread.
    await setImmediate();
    const erasures: Erasure[] = [];
    for (const [index, place] of places.entries()) {
      const stored = found[index];
      const erasure = stored?.entry === undefined ? toBareErasure(place) : toErasure(place, stored);
      // When everything goes, no branch needs a place to go on from, and unreadable entries go too.
      if (person === undefined) erasures.push({ ...erasure, after: undefined });
      else if (erasure.authorKeys.includes(toAuthorKey(person, erasure.entryKey))) erasures.push(erasure);
      else continue;
      if (stored?.entry !== undefined) erased.push(stored.entry.id);
    }
    if (erasures.length > 0) await keys.erase(erasures);
  }
  // Erased messages must not be read again from the platform. One number stays: an erased conversation is not new.
  const first = person === undefined ? Math.max(head.first, head.last) : head.first;
  await keys.writeHead(conversationId, { ...head, first, broughtUntil: now() });
  return erased;
}

function toBareErasure(place: Place): Erasure {
  return { entryKey: toEntryKey(place), ids: [], authorKeys: [], after: undefined };
}

/** Numbers read beyond those asked for, to get past erased entries and those of other branches. */
const MAX_OTHER_ENTRIES = 1_000;

/** Numbers read at once after a jump back along a branch: where branches take turns, each has few entries in a row. */
const ENTRIES_AFTER_JUMP = 8;

/** Numbers read at first where characters are bounded, and how many times more with each further look. */
const FIRST_ENTRIES = 32;
const MORE_EACH_TIME = 4;

/** The entry at which a reading begins; it goes on to older ones. */
interface ChainStart {
  conversationId: string;
  seq: number;
  /** Leaves that entry out: only the entries it follows are read. */
  isLeftOut: boolean;
}

/**
 * Reads an entry and those it follows, as many as were asked for. An entry that names the one it continues passes over
 * what was said between them: that is another branch. Its cost grows with `maxEntries` alone, whatever the conversation's length.
 */
async function readChain(
  keys: HistoryKeys,
  head: Head,
  { conversationId, seq, isLeftOut }: ChainStart,
  { maxEntries, maxChars = Infinity }: { maxEntries: number; maxChars: number | undefined },
): Promise<{ entries: HistoryEntry[]; hasOlder: boolean }> {
  const newestFirst: HistoryEntry[] = [];
  const toNext = createStep();
  let at = Math.min(seq, head.last);
  let atOnce = Math.min(maxChars === Infinity ? Infinity : FIRST_ENTRIES, maxEntries + (isLeftOut ? 2 : 1));
  let most = atOnce;
  let chars = 0;
  let left = maxEntries + MAX_OTHER_ENTRIES;
  while (at >= head.first && newestFirst.length <= maxEntries && chars < maxChars && left > 0) {
    const top = at;
    const bottom = top - Math.min(most, top - head.first + 1, left);
    const places = Array.from({ length: top - bottom }, (_, offset) => ({ conversationId, seq: top - offset }));
    const found = await keys.readEntries(places);
    while (at > bottom) {
      const stored = found[top - at];
      if (stored?.entry !== undefined && !(isLeftOut && at === seq)) {
        newestFirst.push(stored.entry);
        chars += countChars(stored.entry);
      }
      at = toNext(at, stored);
    }
    left -= places.length;
    atOnce = Math.min(atOnce * MORE_EACH_TIME, maxEntries + 1);
    most = at === bottom ? atOnce : ENTRIES_AFTER_JUMP;
  }
  return {
    entries: newestFirst.slice(0, maxEntries).toReversed(),
    // Beyond the numbers that were looked at there may be more; without an entry to go on from it cannot be reached.
    hasOlder: newestFirst.length > maxEntries || (newestFirst.length > 0 && at >= head.first),
  };
}

function countChars({ messages }: HistoryEntry): number {
  return messages.reduce((sum, message) => sum + textOf(message).length, 0);
}

/** Makes the function that returns the number of the entry to read next. */
function createStep(): (at: number, stored: StoredEntry | ErasedEntry | undefined) => number {
  let isLine = false;
  return (at, stored) => {
    // Said to no message in particular, it was said in a place where people see everything in one line.
    if (stored?.entry?.author !== undefined && stored.after === undefined) isLine = true;
    const after = isLine ? undefined : stored?.after;
    return after !== undefined && after < at ? after : at - 1;
  };
}
