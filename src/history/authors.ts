import type { HistoryEntry } from "../history.ts";
import type { KeyedTurns } from "./keyed-turns.ts";
import type { HistoryKeys } from "./keys.ts";
import { type AuthorPosition, toAuthorKeys, toAuthorNamespace } from "./record.ts";

/** Everything the history keeps about one person. */
export interface AuthorExport {
  platform: string;
  authorId: string;
  /** Unix milliseconds. */
  exportedAt: number;
  /** Their messages and the answers to them, oldest first, by conversation. */
  conversations: Array<{ conversationId: string; entries: HistoryEntry[] }>;
}

export interface AuthorRecords {
  exportAuthor(platform: string, authorId: string): Promise<AuthorExport>;
  forgetAuthor(platform: string, authorId: string): Promise<number>;
  countAuthor(platform: string, authorId: string): Promise<AuthorCount>;
}

/** How much the history keeps about one person. */
export interface AuthorCount {
  /** Their messages and the answers to them. */
  entries: number;
  conversations: number;
}

/** One entry as the namespace of a person names it. */
interface Found {
  entryKey: string;
  authorKey: string;
  position: AuthorPosition | undefined;
}

/** What the history keeps about one person, found through the namespace that belongs to that person alone. */
export function createAuthorRecords(keys: HistoryKeys, inTurn: KeyedTurns, now: () => number): AuthorRecords {
  return {
    async exportAuthor(platform, authorId) {
      const conversations = new Map<string, Array<{ seq: number; entry: HistoryEntry }>>();
      for await (const found of findEntries(keys, toAuthorNamespace({ platform, id: authorId }))) {
        const entry = await readOwn(keys, found);
        if (entry === undefined || found.position === undefined) continue;
        const { conversationId, seq } = found.position;
        const entries = conversations.get(conversationId) ?? [];
        conversations.set(conversationId, [...entries, { seq, entry }]);
      }
      return {
        platform,
        authorId,
        exportedAt: now(),
        conversations: [...conversations].map(([conversationId, entries]) => ({
          conversationId,
          entries: entries.toSorted((left, right) => left.seq - right.seq).map(({ entry }) => entry),
        })),
      };
    },

    async forgetAuthor(platform, authorId) {
      let erased = 0;
      for await (const found of findEntries(keys, toAuthorNamespace({ platform, id: authorId }))) {
        const { conversationId } = found.position ?? { conversationId: found.entryKey };
        if (await inTurn(conversationId, () => forgetEntry(keys, found))) erased++;
      }
      return erased;
    },

    async countAuthor(platform, authorId) {
      const conversationIds = new Set<string>();
      let entries = 0;
      for await (const { position } of findEntries(keys, toAuthorNamespace({ platform, id: authorId }))) {
        if (position === undefined) continue;
        entries++;
        conversationIds.add(position.conversationId);
      }
      return { entries, conversations: conversationIds.size };
    },
  };
}

async function* findEntries(keys: HistoryKeys, namespace: string): AsyncGenerator<Found> {
  // A store may name a key twice while others are written.
  const seen = new Set<string>();
  for await (const [key, value] of keys.walk(namespace)) {
    if (seen.has(key)) continue;
    seen.add(key);
    const authorKey = `${namespace}:${key}`;
    yield { authorKey, entryKey: `e:${key}`, position: keys.readers.authorPosition(authorKey, value) };
  }
}

async function readOwn(keys: HistoryKeys, { authorKey, entryKey }: Found): Promise<HistoryEntry | undefined> {
  const [value] = await keys.getMany([entryKey]);
  const entry = keys.readers.entry(entryKey, value)?.entry;
  return entry !== undefined && toAuthorKeys(entry, entryKey).includes(authorKey) ? entry : undefined;
}

/** Resolves to false when there was none, or when it is somebody else's and only the pointer to it goes. */
async function forgetEntry(keys: HistoryKeys, { authorKey, entryKey, position }: Found): Promise<boolean> {
  const [value] = await keys.getMany([entryKey]);
  const stored = keys.readers.entry(entryKey, value);
  if (stored?.entry === undefined) {
    // What cannot be read is erased too: the pointer says whose it is.
    const ids = position === undefined ? [] : [position.entryId, ...position.aliases];
    await keys.erase([{ entryKey, ids, authorKeys: [authorKey], after: stored?.after }]);
    return stored === undefined && value !== undefined;
  }
  const authorKeys = toAuthorKeys(stored.entry, entryKey);
  if (!authorKeys.includes(authorKey)) {
    await keys.eraseKey(authorKey);
    return false;
  }
  await keys.erase([{ entryKey, ids: [stored.entry.id, ...stored.aliases], authorKeys, after: stored.after }]);
  return true;
}
