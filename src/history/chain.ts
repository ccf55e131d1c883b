import type { HistoryKeys } from "./keys.ts";
import type { ErasedEntry, Head, HistoryEntry, StoredEntry } from "./record.ts";

/** Numbers read beyond those asked for, to get past erased entries and those of other branches. */
const MAX_OTHER_ENTRIES = 1_000;

/** Numbers read at once after a jump back along a branch: where branches take turns, each has few entries in a row. */
const ENTRIES_AFTER_JUMP = 8;

/** The entry at which a reading begins; it goes on to older ones. */
export interface ChainStart {
  conversationId: string;
  seq: number;
  /** That entry is left out: only those it follows are read. */
  isLeftOut: boolean;
}

/**
 * Reads an entry and those it follows, as many as were asked for. An entry that names the one it continues passes over
 * what was said between them: that is another branch. Costs what `maxEntries` is, whatever the conversation's length.
 */
export async function readChain(
  keys: HistoryKeys,
  head: Head,
  { conversationId, seq, isLeftOut }: ChainStart,
  maxEntries: number,
): Promise<{ entries: HistoryEntry[]; hasOlder: boolean }> {
  const newestFirst: HistoryEntry[] = [];
  const toNext = createStep();
  let at = Math.min(seq, head.last);
  let most = maxEntries + (isLeftOut ? 2 : 1);
  let left = maxEntries + MAX_OTHER_ENTRIES;
  while (at >= head.first && newestFirst.length <= maxEntries && left > 0) {
    const top = at;
    const bottom = top - Math.min(most, top - head.first + 1, left);
    const places = Array.from({ length: top - bottom }, (_, offset) => ({ conversationId, seq: top - offset }));
    const found = await keys.readEntries(places);
    while (at > bottom) {
      const stored = found[top - at];
      if (stored?.entry !== undefined && !(isLeftOut && at === seq)) newestFirst.push(stored.entry);
      at = toNext(at, stored);
    }
    left -= places.length;
    most = at === bottom ? maxEntries + 1 : ENTRIES_AFTER_JUMP;
  }
  return {
    entries: newestFirst.slice(0, maxEntries).toReversed(),
    // Beyond the numbers that were looked at there may be more; without an entry to go on from it cannot be reached.
    hasOlder: newestFirst.length > maxEntries || (newestFirst.length > 0 && at >= head.first),
  };
}

/** Gives the number to go on from. */
function createStep(): (at: number, stored: StoredEntry | ErasedEntry | undefined) => number {
  let isLine = false;
  return (at, stored) => {
    // Said to no message in particular, it was said in a place where people see everything in one line.
    if (stored?.entry?.author !== undefined && stored.after === undefined) isLine = true;
    const after = isLine ? undefined : stored?.after;
    return after !== undefined && after < at ? after : at - 1;
  };
}
