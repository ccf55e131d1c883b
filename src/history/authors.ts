import type { Owner } from "../store/owned.ts";
import type { FoundEntry, HistoryKeys, RunInConversation } from "./keys.ts";
import { concerns, type HistoryEntry } from "./record.ts";

const PAGE_ENTRIES = 100;

export interface AuthorExport {
  platform: string;
  authorId: string;
  /** Unix milliseconds. */
  exportedAt: number;
  /** The person's messages and the answers to them, oldest first, by conversation. */
  conversations: Array<{ conversationId: string; entries: HistoryEntry[] }>;
}

export interface AuthorRecords {
  exportAuthor(platform: string, authorId: string): Promise<AuthorExport>;
  forgetAuthor(platform: string, authorId: string): Promise<number>;
  countAuthor(platform: string, authorId: string): Promise<AuthorCount>;
  conversationsOf(platform: string, authorId: string): Promise<string[]>;
}

export interface AuthorCount {
  /** Number of messages and answers. */
  entries: number;
  conversations: number;
}

/** Exports and erases one person's entries. Finds them through the store's owner index. */
export function createAuthorRecords(keys: HistoryKeys, inTurn: RunInConversation, now: () => number): AuthorRecords {
  return {
    async exportAuthor(platform, authorId) {
      const owner = { platform, id: authorId };
      const conversations: AuthorExport["conversations"] = [];
      for (const [conversationId, found] of Map.groupBy(await keys.find(owner), toConversation)) {
        const entries: HistoryEntry[] = [];
        for (const page of inPages(found.toSorted((left, right) => left.seq - right.seq))) {
          const stored = await keys.readFound(page);
          entries.push(...stored.flatMap((one) => (one?.entry && concerns(one.entry, owner) ? [one.entry] : [])));
        }
        if (entries.length > 0) conversations.push({ conversationId, entries });
      }
      return { platform, authorId, exportedAt: now(), conversations };
    },

    async forgetAuthor(platform, authorId) {
      const owner = { platform, id: authorId };
      let erased = 0;
      for (const [conversationId, found] of Map.groupBy(await keys.find(owner), toConversation)) {
        for (const page of inPages(found)) {
          erased += await inTurn(conversationId, (keys) => forgetPage(keys, now, conversationId, page, owner));
        }
      }
      // Also erases entries that are written during the erasure.
      await keys.eraseOf(owner);
      return erased;
    },

    async countAuthor(platform, authorId) {
      const found = await keys.find({ platform, id: authorId });
      return { entries: found.length, conversations: new Set(found.map(toConversation)).size };
    },

    async conversationsOf(platform, authorId) {
      const found = await keys.find({ platform, id: authorId });
      return [...new Set(found.toReversed().map(toConversation))];
    },
  };
}

/**
 * Erases a page of one conversation's entries, but keeps the numbers that later entries need to follow their branch.
 * Resolves to the number of erased entries.
 */
async function forgetPage(
  keys: HistoryKeys,
  now: () => number,
  conversationId: string,
  page: readonly FoundEntry[],
  owner: Owner,
): Promise<number> {
  const stored = await keys.readFound(page);
  const erased = page.flatMap(({ entryKey }, index) => {
    const found = stored[index];
    // Also erase entries that cannot be parsed, because the index says whose entries they are.
    const isTheirs = found?.entry === undefined || concerns(found.entry, owner);
    return isTheirs ? [{ entryKey, ids: [], after: found?.after }] : [];
  });
  await keys.erase(erased);
  // Mark the erased messages as fetched, so that the bot does not fetch them from the platform again.
  const head = await keys.readHead(conversationId);
  if (head !== undefined) await keys.writeHead(conversationId, { ...head, broughtUntil: now() });
  return erased.length;
}

function* inPages(found: readonly FoundEntry[]): Generator<FoundEntry[]> {
  for (let from = 0; from < found.length; from += PAGE_ENTRIES) yield found.slice(from, from + PAGE_ENTRIES);
}

function toConversation({ conversationId }: FoundEntry): string {
  return conversationId;
}
