import type { Keyv } from "keyv";
import type { Logger } from "pino";
import type { AttachmentRef } from "./adapter.ts";
import type { ChatMessage } from "./gateway/chunks.ts";
import { type AuthorExport, createAuthorRecords } from "./history/authors.ts";
import { createKeyedTurns, type KeyedTurns } from "./history/keyed-turns.ts";
import { createHistoryKeys, type HistoryKeys } from "./history/keys.ts";
import { type Head, type Position, toAuthorKeys, toEntryKey, toHeadKey, toIndexKey } from "./history/record.ts";

/** Numbers that `read` looks at beyond what it was asked for, to get past entries that were erased. */
const MAX_GAP_ENTRIES = 1_000;

/** More than can be appended in a millisecond. */
const SEQS_PER_MS = 1_000;

/** What was said at one time: a person's message, or an answer with everything that belongs to it. */
export interface HistoryEntry {
  /** The platform's id of a person's message, or the turn's id of an answer. Unique over all conversations. */
  id: string;
  /** Unix milliseconds. */
  at: number;
  /** Of a person's message. The name is untrusted text. */
  author?: { platform: string; id: string; name: string };
  /** Of an answer: whose turn it was. */
  askedBy?: { platform: string; id: string };
  /** A person's message: one user message. An answer: calls, their results and the text, never parted from each other. */
  messages: ChatMessage[];
  attachments?: AttachmentRef[];
  /** The text broke off; what was shown is stored. */
  partial?: boolean;
  /** The gateway would not answer: with the question in front of it, it would refuse everything that follows too. */
  isRefused?: boolean;
}

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
   * message ids that find it, such as those of the messages an answer was posted in; earlier ones stay.
   */
  append(conversationId: string, entry: HistoryEntry, aliases?: readonly string[]): Promise<void>;
  /**
   * The newest entries, oldest first; only those older than `beforeId` when it is given, none when it is unknown.
   * Costs what `maxEntries` is, whatever the length of the conversation.
   */
  read(conversationId: string, options: ReadOptions): Promise<{ entries: HistoryEntry[]; hasOlder: boolean }>;
  /** Finds the entry of a platform message, or of a turn. */
  find(messageId: string): Promise<{ conversationId: string; entryId: string } | undefined>;
  /** Changes a person's message; keeps it no longer than before. Resolves to false when there is none. */
  edit(messageId: string, text: string, attachments: AttachmentRef[]): Promise<boolean>;
  /** Erases the whole entry of a message: an answer that was posted in several goes with any of them. */
  remove(messageId: string): Promise<boolean>;
  /** Whether the bot answers here without being addressed. */
  isFollowed(conversationId: string): Promise<boolean>;
  setFollowed(conversationId: string, followed: boolean): Promise<void>;
  /** Everything that is kept about a person: their messages and the answers to them. */
  exportAuthor(platform: string, authorId: string): Promise<AuthorExport>;
  /** Erases a person's messages, the answers to them and every index of both. Resolves to the number of entries. */
  forgetAuthor(platform: string, authorId: string): Promise<number>;
}

export interface ReadOptions {
  maxEntries: number;
  beforeId?: string;
}

export interface HistoryOptions {
  /** Namespaces nest, and `setMany` and `deleteMany` do all or nothing: see `Stores`. */
  open: (namespace: string) => Keyv;
  ttlMs: number;
  log: Logger;
  /** Unix milliseconds. */
  now: () => number;
}

export function createHistory({ open, ttlMs, log, now }: HistoryOptions): History {
  const keys = createHistoryKeys(open, ttlMs, log);
  // Within this process also an edit, an erasure and an append of one conversation wait for each other.
  const inTurn = createKeyedTurns();

  return {
    append: (conversationId, entry, aliases = []) =>
      inTurn(conversationId, () => append(keys, now, conversationId, entry, aliases)),
    read: (conversationId, options) => read(keys, conversationId, options),
    async find(messageId) {
      const position = await keys.readPosition(messageId);
      return position && { conversationId: position.conversationId, entryId: position.entryId };
    },
    edit: (messageId, text, attachments) =>
      atPosition(keys, inTurn, messageId, async (position) => {
        const stored = await keys.readEntry(position);
        if (stored?.entry.author === undefined) return false;
        const [first, ...rest] = stored.entry.messages;
        if (first?.role !== "user") return false;
        const entry = { ...stored.entry, attachments, messages: [{ ...first, content: text }, ...rest] };
        await keys.rewriteEntry(position, { ...stored, entry });
        return true;
      }),
    remove: (messageId) =>
      atPosition(keys, inTurn, messageId, async (position) => {
        const stored = await keys.readEntry(position);
        const entryKey = toEntryKey(position);
        const authorKeys = stored === undefined ? [] : toAuthorKeys(stored.entry, entryKey);
        await keys.erase(entryKey, [position.entryId, ...(stored?.aliases ?? [])], authorKeys);
        return stored !== undefined;
      }),
    async isFollowed(conversationId) {
      return (await readHead(keys, conversationId))?.followed ?? false;
    },
    setFollowed: (conversationId, followed) =>
      inTurn(conversationId, async () => {
        const head = await readHead(keys, conversationId);
        if ((head?.followed ?? false) === followed) return;
        await keys.writeHead(conversationId, { ...(head ?? emptyHead(now)), followed });
      }),
    ...createAuthorRecords(keys, inTurn, now),
  };
}

async function append(
  keys: HistoryKeys,
  now: () => number,
  conversationId: string,
  entry: HistoryEntry,
  aliases: readonly string[],
): Promise<void> {
  const headKey = toHeadKey(conversationId);
  const indexKey = toIndexKey(entry.id);
  const [head, index] = await keys.getMany([headKey, indexKey]);
  const known = keys.readers.head(headKey, head) ?? emptyHead(now);
  const place = placeOf(keys.readers.position(indexKey, index), conversationId, known);
  const old = place && (await keys.readEntry(place));
  const seq = place?.seq ?? known.last + 1;
  await keys.writeEntry(
    { conversationId, seq, entryId: entry.id },
    { entry, aliases: [...new Set([...(old?.aliases ?? []), ...aliases])] },
    { ...known, last: Math.max(known.last, seq) },
  );
}

/** The place of an entry that is stored already and can be seen, not one that an index left behind. */
function placeOf(position: Position | undefined, conversationId: string, head: Head): Position | undefined {
  if (position?.conversationId !== conversationId) return undefined;
  return position.seq >= head.first && position.seq <= head.last ? position : undefined;
}

async function read(keys: HistoryKeys, conversationId: string, { maxEntries, beforeId }: ReadOptions) {
  const none = { entries: [], hasOlder: false };
  const headKey = toHeadKey(conversationId);
  const beforeKey = beforeId === undefined ? undefined : toIndexKey(beforeId);
  const [head, before] = await keys.getMany(beforeKey === undefined ? [headKey] : [headKey, beforeKey]);
  const known = keys.readers.head(headKey, head);
  if (known === undefined || maxEntries < 1) return none;
  if (beforeKey === undefined) return readDown(keys, conversationId, known.first, known.last, maxEntries);
  const position = keys.readers.position(beforeKey, before);
  if (position?.conversationId !== conversationId) return none;
  return readDown(keys, conversationId, known.first, Math.min(position.seq - 1, known.last), maxEntries);
}

/** Reads entries from number `to` down until there are enough; one more than asked tells whether there are older ones. */
async function readDown(keys: HistoryKeys, conversationId: string, first: number, to: number, maxEntries: number) {
  const newestFirst: HistoryEntry[] = [];
  const lowest = Math.max(first, to - maxEntries - MAX_GAP_ENTRIES);
  let next = to;
  while (next >= lowest && newestFirst.length <= maxEntries) {
    const count = Math.min(next - lowest + 1, maxEntries + 1);
    const positions = Array.from({ length: count }, (_, offset) => ({ conversationId, seq: next - offset }));
    for (const stored of await keys.readEntries(positions)) if (stored !== undefined) newestFirst.push(stored.entry);
    next -= count;
  }
  return {
    entries: newestFirst.slice(0, maxEntries).toReversed(),
    // Beyond the gap that was looked at there may be more; without an entry to go on from it cannot be reached.
    hasOlder: newestFirst.length > maxEntries || (newestFirst.length > 0 && next >= first),
  };
}

/** Runs a change at the place of a message, once no other change of that conversation runs. */
async function atPosition(
  keys: HistoryKeys,
  inTurn: KeyedTurns,
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

async function readHead(keys: HistoryKeys, conversationId: string): Promise<Head | undefined> {
  const key = toHeadKey(conversationId);
  const [head] = await keys.getMany([key]);
  return keys.readers.head(key, head);
}

/**
 * The head of a conversation of which nothing is known. Numbers begin at the clock and grow more slowly than it, so
 * entries which a lost head left behind have smaller ones than any that follow: never seen again, nor overwritten.
 */
function emptyHead(now: () => number): Head {
  const first = now() * SEQS_PER_MS;
  return { first, last: first - 1, followed: false };
}
