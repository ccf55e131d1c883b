import { setImmediate } from "node:timers/promises";
import { readHead } from "./appends.ts";
import type { Erasure, HistoryKeys } from "./keys.ts";
import { type StoredEntry, toAuthorKey, toAuthorKeys, toEntryKey } from "./record.ts";

const PAGE_ENTRIES = 100;

type Place = Parameters<typeof toEntryKey>[0];

/** An entry with everything that finds it. What continues it goes on with what it continued. */
export function toErasure(place: Place, { entry, aliases, after }: StoredEntry): Erasure {
  const entryKey = toEntryKey(place);
  return { entryKey, ids: [entry.id, ...aliases], authorKeys: toAuthorKeys(entry, entryKey), after };
}

/**
 * Erases what a person said in a conversation and the answers to it; all of the conversation where no person is given,
 * which then has a history all the same, one without entries. Gives the ids of what was erased.
 */
export async function eraseConversation(
  keys: HistoryKeys,
  conversationId: string,
  person: { platform: string; id: string } | undefined,
): Promise<string[]> {
  const head = await readHead(keys, conversationId);
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
      // Where all goes nobody goes on from anywhere, and what cannot be read goes too.
      if (person === undefined) erasures.push({ ...erasure, after: undefined });
      else if (erasure.authorKeys.includes(toAuthorKey(person, erasure.entryKey))) erasures.push(erasure);
      else continue;
      if (stored?.entry !== undefined) erased.push(stored.entry.id);
    }
    if (erasures.length > 0) await keys.erase(erasures);
  }
  // One number stays behind: a conversation that never had any is begun with what was said before it.
  if (person === undefined) await keys.writeHead(conversationId, { ...head, first: Math.max(head.first, head.last) });
  return erased;
}

function toBareErasure(place: Place): Erasure {
  return { entryKey: toEntryKey(place), ids: [], authorKeys: [], after: undefined };
}
