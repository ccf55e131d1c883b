import { setImmediate } from "node:timers/promises";
import type { Logger } from "pino";
import { textOf } from "../gateway/chunks.ts";
import type { AttachmentRef } from "../port/events.ts";
import { readKeyPart } from "../store/key-part.ts";
import type { Stores } from "../store/keyv.ts";
import { type AuthorCount, type AuthorExport, createAuthorRecords } from "./authors.ts";
import { createHistoryKeys, type Erasure, type HistoryKeys, type Place, type RunInConversation } from "./keys.ts";
import {
  concerns,
  type ErasedEntry,
  type Head,
  type HistoryEntry,
  type Position,
  type StoredEntry,
  toDeletedKey,
  toEntryKey,
  toHeadKey,
  toIndexKey,
} from "./record.ts";

/** No process can append more entries than this in one millisecond. */
const SEQS_PER_MS = 1_000;
const PAGE_ENTRIES = 100;

/**
 * Stores conversations. The queue gives each conversation to one worker at a time, and only that worker writes to it.
 * Every promise rejects if the store is unavailable, so an outage never looks like an empty history. A value that is
 * damaged or has another version counts as missing. Each entry expires `ttlMs` after it was appended.
 */
export interface History {
  /**
   * Appends an entry and all keys that find it, or stores nothing. The cost does not depend on the conversation's
   * length. If an entry with this id exists, replaces it in its position.
   *
   * `aliases` are more message ids that find the entry, such as those of the messages that show an answer. Earlier
   * aliases stay. `after` finds the entry that this one continues; messages between the two belong to another branch.
   * Without a known `after`, a person's message continues everything before it, and an answer continues the entry right
   * before it.
   */
  append(
    conversationId: string,
    entry: HistoryEntry,
    aliases?: readonly string[],
    after?: string,
    news?: HeadNews,
  ): Promise<void>;
  /**
   * Appends an answer long after the bot gave it, unless that answer or a later one is stored. If the entry before the
   * answer is missing, first appends the questions in `asked` that no one deleted or erased. Resolves to false if the
   * answer would continue no entry.
   */
  appendLate(conversationId: string, answer: Continuation, asked?: readonly Continuation[]): Promise<boolean>;
  /** Resolves to true if the conversation never had an entry. */
  isNew(conversationId: string): Promise<boolean>;
  /**
   * Resolves to a time in Unix milliseconds: other people's messages up to it are stored or were erased. `Infinity` if
   * the time is unknown, undefined if the conversation is new and `bring` never added anything.
   */
  broughtUntil(conversationId: string): Promise<number | undefined>;
  /** Appends other people's messages up to the time `until`, all or none. Skips messages that are already stored. */
  bring(conversationId: string, entries: readonly HistoryEntry[], until: number): Promise<void>;
  /**
   * Reads the newest entry and the entries before it on its branch, oldest first. The cost depends only on
   * `maxEntries`.
   */
  read(conversationId: string, options: ReadOptions): Promise<{ entries: HistoryEntry[]; hasOlder: boolean }>;
  /** Resolves to the first entry of the conversation; undefined if it was erased. */
  readFirst(conversationId: string): Promise<HistoryEntry | undefined>;
  /** Finds the entry for a platform message or a turn. */
  find(messageId: string): Promise<{ conversationId: string; entryId: string } | undefined>;
  /** Changes a stored message of a person, but not when it expires. Resolves to false if it is not stored. */
  edit(messageId: string, text: string, attachments: AttachmentRef[]): Promise<boolean>;
  /** Erases the whole entry that a message belongs to: removing one message of an answer erases the whole answer. */
  remove(messageId: string): Promise<boolean>;
  /** Remembers for a day that a message was deleted, because the message can arrive after its deletion. */
  markDeleted(messageId: string): Promise<void>;
  /** Resolves to the ids of the messages that were deleted before they arrived. */
  deletedOf(messageIds: readonly string[]): Promise<string[]>;
  /** Resolves to true if the bot answers without a mention: now, or at the time `at` (Unix milliseconds). */
  isFollowed(conversationId: string, at?: number): Promise<boolean>;
  /** `since` is the time of the message from which the bot follows. Does nothing if the bot already follows. */
  setFollowed(conversationId: string, followed: boolean, since?: number): Promise<void>;
  /** Exports a person's messages and the answers to them. */
  exportAuthor(platform: string, authorId: string): Promise<AuthorExport>;
  /** Counts without reading the entries. */
  countAuthor(platform: string, authorId: string): Promise<AuthorCount>;
  /** Lists the conversations in which a person took part, most recent first. Does not read the entries. */
  conversationsOf(platform: string, authorId: string): Promise<string[]>;
  /**
   * Erases a person's messages, the answers to them and everything that finds them. Resolves to the number of entries.
   */
  forgetAuthor(platform: string, authorId: string): Promise<number>;
  /**
   * Erases the whole conversation, or one person's messages and the answers to them. Resolves to the ids of the erased
   * entries.
   */
  forgetConversation(conversationId: string, person?: { platform: string; id: string }): Promise<string[]>;
  /** Ids of all conversations with this prefix. The cost grows with the number of conversations. */
  conversations(prefix: string): AsyncIterable<string>;
}

/** The changes that a new question makes to its conversation's head. */
export interface HeadNews {
  /** Up to this time, all messages between people are stored, see `broughtUntil`. */
  nothingUntil?: number | undefined;
  /** Time of the message from which the bot follows, see `setFollowed`. */
  followedSince?: number | undefined;
}

/** An entry, the entry that it continues, and what it changes in its conversation. */
export interface Continuation {
  entry: HistoryEntry;
  aliases?: readonly string[];
  after?: string | undefined;
  news?: HeadNews | undefined;
}

export interface ReadOptions {
  maxEntries: number;
  /** Reading stops soon after this many characters. Absent: no limit. */
  maxChars?: number;
  /** Reads only the entries that the entry with this id continues. Reads nothing if the id is unknown. */
  beforeId?: string;
  /** Like `beforeId`, but includes that entry. */
  upToId?: string;
}

export interface HistoryOptions extends Pick<Stores, "open" | "inTurn"> {
  ttlMs: number;
  log: Logger;
  /** Unix milliseconds. */
  now: () => number;
  /**
   * A clock that never goes back, see `Stores.now`. New conversations number their entries from its time. Absent:
   * `now`.
   */
  clock?: () => number;
}

export function createHistory(options: HistoryOptions): History {
  const { ttlMs, log, now, clock = now } = options;
  const keys = createHistoryKeys(options.open, ttlMs, log);
  const inTurn: RunInConversation = (conversationId, task) =>
    options.inTurn(conversationId, (open) => task(createHistoryKeys(open, ttlMs, log)));

  return {
    append: (conversationId, entry, aliases = [], after, news) =>
      inTurn(conversationId, async (keys) => {
        await append(keys, clock, { conversationId, entry, aliases, after, news });
      }),
    appendLate: (conversationId, answer, asked = []) =>
      inTurn(conversationId, async (keys) => {
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
      inTurn(conversationId, (keys) => bring(keys, clock, { conversationId, entries, until })),
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
      atPosition(keys, inTurn, messageId, async (position, keys) => {
        const stored = await keys.readEntry(position);
        if (stored?.entry === undefined || stored.entry.author === undefined) return false;
        const [first, ...rest] = stored.entry.messages;
        if (first?.role !== "user") return false;
        const entry = { ...stored.entry, attachments, messages: [{ ...first, content: text }, ...rest] };
        await keys.rewriteEntry(position, { ...stored, entry });
        return true;
      }),
    remove: (messageId) =>
      atPosition(keys, inTurn, messageId, async (position, keys) => {
        const stored = await keys.readEntry(position);
        const ids = [messageId, position.entryId];
        const left = { entryKey: toEntryKey(position), ids, after: stored?.after };
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
      inTurn(conversationId, async (keys) => {
        const head = await keys.readHead(conversationId);
        if ((head?.followed ?? false) === followed) return;
        await keys.writeHead(conversationId, { ...(head ?? emptyHead(clock)), followed, followedSince: since });
      }),
    forgetConversation: (conversationId, person) =>
      inTurn(conversationId, (keys) => eraseConversation(keys, now, conversationId, person)),
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

/** Changes a message's entry. Meanwhile, no other change of that conversation runs. */
async function atPosition(
  keys: HistoryKeys,
  inTurn: RunInConversation,
  messageId: string,
  change: (position: Position, keys: HistoryKeys) => Promise<boolean>,
): Promise<boolean> {
  const found = await keys.readPosition(messageId);
  if (found === undefined) return false;
  return inTurn(found.conversationId, async (keys) => {
    // The message may have been erased while this change waited for its turn.
    const position = await keys.readPosition(messageId);
    return position === undefined || toEntryKey(position) !== toEntryKey(found) ? false : change(position, keys);
  });
}

interface Append extends Continuation {
  conversationId: string;
  /** If true, never replaces an entry, and appends only after the entry that this one continues. */
  isLate?: true;
}

/** Appends an entry, or replaces it in its position and branch. Resolves to true if the entry is stored. */
async function append(keys: HistoryKeys, now: () => number, appended: Append): Promise<boolean> {
  const { conversationId, entry, aliases = [], after, news, isLate } = appended;
  const headKey = toHeadKey(conversationId);
  const indexKeys = [entry.id, ...(after === undefined ? [] : [after])].map(toIndexKey);
  const [head, ...indexes] = await keys.getMany([headKey, ...indexKeys]);
  const known = keys.readers.head(headKey, head) ?? emptyHead(now);
  const [place, continued] = indexKeys.map((key, index) =>
    placeOf(keys.readers.position(key, indexes[index]), conversationId, known),
  );
  if (isLate && place === undefined && continued === undefined) return false;
  const old = place && (await keys.readEntry(place));
  // The stored answer may belong to a later version of the question.
  if (isLate && place !== undefined && !(old?.entry !== undefined && isLaterEnd(entry, old.entry))) return true;
  const seq = place?.seq ?? known.last + 1;
  const parent = old === undefined ? toParent(entry, seq, continued?.seq) : old.after;
  const allAliases = [...new Set([...(old?.entry === undefined ? [] : old.aliases), ...aliases])];
  const stored = { entry, aliases: allAliases, ...(parent !== undefined && { after: parent }) };
  const position = { conversationId, seq, entryId: entry.id };
  const last = Math.max(known.last, seq);
  await keys.writeEntries([{ position, stored }], { ...withNews(known, news), last });
  return true;
}

function withNews(head: Head, { nothingUntil, followedSince }: HeadNews = {}): Head {
  return {
    ...head,
    ...(nothingUntil !== undefined && { broughtUntil: Math.max(head.broughtUntil ?? 0, nothingUntil) }),
    ...(followedSince !== undefined && !head.followed && { followed: true, followedSince }),
  };
}

/** Leaves out entries that were deleted before they arrived, or erased with their conversation. */
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

/** Returns the number to store as `after`; undefined if an answer continues the entry right before it. */
function toParent({ author }: HistoryEntry, seq: number, continued: number | undefined): number | undefined {
  const isImplied = author === undefined && continued === seq - 1;
  return isImplied || (continued !== undefined && continued >= seq) ? undefined : continued;
}

interface Bring {
  conversationId: string;
  entries: readonly HistoryEntry[];
  until: number;
}

/** Skips messages that are already stored in another conversation. */
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
  // The conversation was stored by a version without `broughtUntil`.
  const newest = await keys.readEntry({ conversationId, seq: last });
  return newest?.entry?.at ?? Infinity;
}

/** Returns the position of a stored, visible entry; undefined if the index is stale. */
function placeOf(position: Position | undefined, conversationId: string, head: Head): Position | undefined {
  if (position?.conversationId !== conversationId) return undefined;
  return position.seq >= head.first && position.seq <= head.last ? position : undefined;
}

/**
 * Returns the head of a new conversation. Its numbers start at the clock's time and then grow more slowly than that
 * time. If a head is lost, its entries therefore have smaller numbers than all later entries, so they are never shown
 * and never overwritten.
 */
function emptyHead(now: () => number): Head {
  const first = now() * SEQS_PER_MS;
  return { first, last: first - 1, followed: false };
}

/** Returns an entry with all its keys. Entries that continue an erased entry continue its predecessor instead. */
function toErasure(place: Place, { entry, aliases, after }: StoredEntry): Erasure {
  return { entryKey: toEntryKey(place), ids: [entry.id, ...aliases], after };
}

/**
 * Erases a person's messages and the answers to them, or all entries. The conversation itself stays. Returns the ids.
 */
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
    // Lets other work run, because an embedded store never leaves this thread.
    await setImmediate();
    const erasures: Erasure[] = [];
    for (const [index, place] of places.entries()) {
      const stored = found[index];
      const erasure = stored?.entry === undefined ? toBareErasure(place) : toErasure(place, stored);
      // If everything is erased, no branch needs a predecessor, and unreadable entries are erased too.
      if (person === undefined) erasures.push({ ...erasure, after: undefined });
      else if (stored?.entry !== undefined && concerns(stored.entry, person)) erasures.push(erasure);
      else continue;
      if (stored?.entry !== undefined) erased.push(stored.entry.id);
    }
    if (erasures.length > 0) await keys.erase(erasures);
  }
  // Count erased messages as fetched, so that the platform is not asked for them again. Keep one number in use, because
  // an erased conversation is not new.
  const first = person === undefined ? Math.max(head.first, head.last) : head.first;
  await keys.writeHead(conversationId, { ...head, first, broughtUntil: now() });
  return erased;
}

function toBareErasure(place: Place): Erasure {
  return { entryKey: toEntryKey(place), ids: [], after: undefined };
}

/** Maximum number of extra entries to read, because some entries are erased or belong to other branches. */
const MAX_OTHER_ENTRIES = 1_000;

/**
 * Number of entries to read after a jump back along a branch. The number is small, because alternating branches have
 * only a few entries in a row.
 */
const ENTRIES_AFTER_JUMP = 8;

/** With `maxChars`, the first read has this many entries, and each further read is `MORE_EACH_TIME` times as large. */
const FIRST_ENTRIES = 32;
const MORE_EACH_TIME = 4;

interface ChainStart {
  conversationId: string;
  seq: number;
  /** If true, the result leaves out the starting entry. */
  isLeftOut: boolean;
}

/**
 * Reads an entry and those that it continues, up to `maxEntries`. Skips entries between an entry and the one that it
 * continues, because they belong to another branch. The cost depends only on `maxEntries`.
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
    // If no entry was read, older entries can exist but cannot be reached.
    hasOlder: newestFirst.length > maxEntries || (newestFirst.length > 0 && at >= head.first),
  };
}

function countChars({ messages }: HistoryEntry): number {
  return messages.reduce((sum, message) => sum + textOf(message).length, 0);
}

/** Creates a function that returns the number of the next entry to read. */
function createStep(): (at: number, stored: StoredEntry | ErasedEntry | undefined) => number {
  let isLine = false;
  return (at, stored) => {
    // This message continues no entry, so people saw all messages of this place in one sequence.
    if (stored?.entry?.author !== undefined && stored.after === undefined) isLine = true;
    const after = isLine ? undefined : stored?.after;
    return after !== undefined && after < at ? after : at - 1;
  };
}
