import type { KeyedQueue } from "../concurrency/keyed-queue.ts";
import { readKeyPart, toKeyPart } from "../store/key-part.ts";
import type { Erasure, HistoryKeys } from "./keys.ts";
import { type AuthorPosition, type HistoryEntry, toAuthorKeys, toAuthorNamespace } from "./record.ts";

const PAGE_ENTRIES = 100;

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
  exportAuthor(platform: string, authorId: string, within?: string): Promise<AuthorExport>;
  forgetAuthor(platform: string, authorId: string, within?: string): Promise<number>;
  countAuthor(platform: string, authorId: string, within?: string): Promise<AuthorCount>;
  conversationsOf(platform: string, authorId: string, within?: string): Promise<string[]>;
  listAuthors(platform: string): Promise<Set<string>>;
}

/** The amount of what the history keeps about one person. */
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

/** Finds what the history keeps about one person through the namespace that belongs to that person alone. */
export function createAuthorRecords(keys: HistoryKeys, inTurn: KeyedQueue["run"], now: () => number): AuthorRecords {
  return {
    async exportAuthor(platform, authorId, within) {
      const conversations = new Map<string, Array<{ seq: number; entry: HistoryEntry }>>();
      for await (const page of inPages(findEntries(keys, toAuthorNamespace({ platform, id: authorId }), within))) {
        for (const { conversationId, seq, entry } of await readOwn(keys, page)) {
          const entries = conversations.get(conversationId) ?? [];
          conversations.set(conversationId, entries);
          entries.push({ seq, entry });
        }
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

    async forgetAuthor(platform, authorId, within) {
      let erased = 0;
      for await (const page of inPages(findEntries(keys, toAuthorNamespace({ platform, id: authorId }), within))) {
        const toConversation = ({ position, entryKey }: Found) => position?.conversationId ?? entryKey;
        for (const [conversationId, found] of Map.groupBy(page, toConversation)) {
          erased += await inTurn(conversationId, async () => {
            const head = await keys.readHead(conversationId);
            // Marks erased messages as read, so that they are not brought back from the platform.
            if (head !== undefined) await keys.writeHead(conversationId, { ...head, broughtUntil: now() });
            return forgetEntries(keys, found);
          });
        }
      }
      return erased;
    },

    async countAuthor(platform, authorId, within) {
      const conversationIds = new Set<string>();
      let entries = 0;
      for await (const { position } of findEntries(keys, toAuthorNamespace({ platform, id: authorId }), within)) {
        if (position === undefined) continue;
        entries++;
        conversationIds.add(position.conversationId);
      }
      return { entries, conversations: conversationIds.size };
    },

    async conversationsOf(platform, authorId, within) {
      const newest = new Map<string, number>();
      for await (const { position } of findEntries(keys, toAuthorNamespace({ platform, id: authorId }), within)) {
        if (position === undefined) continue;
        // Entries are numbered from the time on at which their conversation began.
        const { conversationId, seq, at = seq } = position;
        newest.set(conversationId, Math.max(at, newest.get(conversationId) ?? 0));
      }
      return [...newest].sort(([, one], [, other]) => other - one).map(([conversationId]) => conversationId);
    },

    async listAuthors(platform) {
      const ids = new Set<string>();
      for await (const [key] of keys.walk(`a:${toKeyPart(platform)}`)) {
        const id = readKeyPart(key.slice(0, key.indexOf(":")));
        if (id !== undefined) ids.add(id);
      }
      return ids;
    },
  };
}

async function* findEntries(keys: HistoryKeys, namespace: string, within: string | undefined): AsyncGenerator<Found> {
  // A store may name a key twice while others are written.
  const seen = new Set<string>();
  for await (const [key, value] of keys.walk(namespace)) {
    if (seen.has(key)) continue;
    seen.add(key);
    const authorKey = `${namespace}:${key}`;
    const position = keys.readers.authorPosition(authorKey, value);
    if (within !== undefined && position?.conversationId.startsWith(within) !== true) continue;
    yield { authorKey, entryKey: `e:${key}`, position };
  }
}

/** Entries handled in one step, so that what a person said in years is read and erased in time. */
async function* inPages(all: AsyncIterable<Found>): AsyncGenerator<Found[]> {
  let page: Found[] = [];
  for await (const found of all) {
    if (page.push(found) < PAGE_ENTRIES) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

async function readOwn(keys: HistoryKeys, page: readonly Found[]) {
  const values = await keys.getMany(page.map(({ entryKey }) => entryKey));
  return page.flatMap(({ entryKey, authorKey, position }, index) => {
    const entry = keys.readers.entry(entryKey, values[index])?.entry;
    if (position === undefined || entry === undefined) return [];
    const { conversationId, seq } = position;
    return toAuthorKeys(entry, entryKey).includes(authorKey) ? [{ conversationId, seq, entry }] : [];
  });
}

/** Erases entries of one conversation. Resolves to how many there were: of somebody else's only the pointer goes. */
async function forgetEntries(keys: HistoryKeys, page: readonly Found[]): Promise<number> {
  const values = await keys.getMany(page.map(({ entryKey }) => entryKey));
  const erasures: Erasure[] = [];
  let erased = 0;
  for (const [index, { entryKey, authorKey, position }] of page.entries()) {
    const stored = keys.readers.entry(entryKey, values[index]);
    if (stored?.entry === undefined) {
      // An unreadable entry is erased too: the pointer says whose it is.
      const ids = position === undefined ? [] : [position.entryId, ...position.aliases];
      erasures.push({ entryKey, ids, authorKeys: [authorKey], after: stored?.after });
      if (stored === undefined && values[index] !== undefined) erased += 1;
      continue;
    }
    const authorKeys = toAuthorKeys(stored.entry, entryKey);
    if (authorKeys.includes(authorKey)) {
      erasures.push({ entryKey, ids: [stored.entry.id, ...stored.aliases], authorKeys, after: stored.after });
      erased += 1;
    } else await keys.eraseKey(authorKey);
  }
  if (erasures.length > 0) await keys.erase(erasures);
  return erased;
}
