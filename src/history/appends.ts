import type { HistoryKeys } from "./keys.ts";
import type { HistoryEntry } from "./record.ts";
import { type Head, type Position, toHeadKey, toIndexKey } from "./record.ts";

/** More than can be appended in a millisecond. */
const SEQS_PER_MS = 1_000;

export interface Append {
  conversationId: string;
  entry: HistoryEntry;
  aliases: readonly string[];
  /** An id that finds the entry it continues. */
  after: string | undefined;
}

/** Appends an entry, or replaces it where it stands; what it continues stays then as it was. */
export async function append(keys: HistoryKeys, now: () => number, appended: Append): Promise<void> {
  const { conversationId, entry, aliases, after } = appended;
  const headKey = toHeadKey(conversationId);
  const indexKeys = [entry.id, ...(after === undefined ? [] : [after])].map(toIndexKey);
  const [head, ...indexes] = await keys.getMany([headKey, ...indexKeys]);
  const known = keys.readers.head(headKey, head) ?? emptyHead(now);
  const [place, continued] = indexKeys.map((key, index) =>
    placeOf(keys.readers.position(key, indexes[index]), conversationId, known),
  );
  const old = place && (await keys.readEntry(place));
  const seq = place?.seq ?? known.last + 1;
  const parent = old === undefined ? toParent(entry, seq, continued?.seq) : old.after;
  const allAliases = [...new Set([...(old?.entry === undefined ? [] : old.aliases), ...aliases])];
  const stored = { entry, aliases: allAliases, ...(parent !== undefined && { after: parent }) };
  const position = { conversationId, seq, entryId: entry.id };
  await keys.writeEntries([{ position, stored }], { ...known, last: Math.max(known.last, seq) });
}

/** An answer follows the entry right before it anyway; a person's message says that it follows that one alone. */
function toParent({ author }: HistoryEntry, seq: number, continued: number | undefined): number | undefined {
  const isImplied = author === undefined && continued === seq - 1;
  return isImplied || (continued !== undefined && continued >= seq) ? undefined : continued;
}

/** Writes all of the first entries of a conversation, or none. Those found elsewhere already are left where they are. */
export async function begin(
  keys: HistoryKeys,
  now: () => number,
  conversationId: string,
  entries: readonly HistoryEntry[],
): Promise<void> {
  const headKey = toHeadKey(conversationId);
  const indexKeys = entries.map(({ id }) => toIndexKey(id));
  const [head, ...indexes] = await keys.getMany([headKey, ...indexKeys]);
  const known = keys.readers.head(headKey, head) ?? emptyHead(now);
  if (known.last >= known.first) return;
  const unknown = entries.filter((_, index) => indexes[index] === undefined);
  const placed = unknown.map((entry, index) => ({
    position: { conversationId, seq: known.first + index, entryId: entry.id },
    stored: { entry, aliases: [] },
  }));
  await keys.writeEntries(placed, { ...known, last: known.last + placed.length });
}

/** The place of an entry that is stored already and can be seen, not one that an index left behind. */
function placeOf(position: Position | undefined, conversationId: string, head: Head): Position | undefined {
  if (position?.conversationId !== conversationId) return undefined;
  return position.seq >= head.first && position.seq <= head.last ? position : undefined;
}

export async function readHead(keys: HistoryKeys, conversationId: string): Promise<Head | undefined> {
  const key = toHeadKey(conversationId);
  const [head] = await keys.getMany([key]);
  return keys.readers.head(key, head);
}

/**
 * The head of a conversation of which nothing is known. Numbers begin at the clock and grow more slowly than it, so
 * entries which a lost head left behind have smaller ones than any that follow: never seen again, nor overwritten.
 */
export function emptyHead(now: () => number): Head {
  const first = now() * SEQS_PER_MS;
  return { first, last: first - 1, followed: false };
}
