import type { Logger } from "pino";
import type { Stores } from "../store/keyv.ts";
import { createDamageLog, walk } from "../store/values.ts";
import {
  createReaders,
  type ErasedEntry,
  type Head,
  type Position,
  type Readers,
  type StoredEntry,
  toAuthorKeys,
  toDeletedKey,
  toEntryKey,
  toHeadKey,
  toIndexKey,
} from "./record.ts";

const NAMESPACE = "history";
/** Longer than any platform goes on telling what was not acknowledged: Slack for an hour, or for a day where that is switched on. */
const DELETED_MS = 25 * 3_600_000;

export type Place = Pick<Position, "conversationId" | "seq">;

export interface PlacedEntry {
  position: Position;
  stored: StoredEntry;
}

/** An entry that goes, with the ids that find it and the keys of the people whom it concerns. */
export interface Erasure {
  entryKey: string;
  ids: readonly string[];
  authorKeys: readonly string[];
  /** Number of the entry that it continued, which is left in its place; undefined: nothing stays. */
  after: number | undefined;
}

/** The history's reads and writes: one call to the store each, all or nothing. */
export interface HistoryKeys {
  readers: Readers;
  getMany(keys: string[]): Promise<unknown[]>;
  readPosition(id: string): Promise<Position | undefined>;
  readEntry(place: Place): Promise<StoredEntry | ErasedEntry | undefined>;
  readEntries(places: Place[]): Promise<Array<StoredEntry | ErasedEntry | undefined>>;
  /** Writes entries of one conversation with every key that finds them, and its head. */
  writeEntries(entries: readonly PlacedEntry[], head: Head): Promise<void>;
  /** Writes what stands at a place that exists, and leaves it the time it has. */
  rewriteEntry(place: Place, stored: StoredEntry): Promise<void>;
  readHead(conversationId: string): Promise<Head | undefined>;
  writeHead(conversationId: string, head: Head): Promise<void>;
  markDeleted(messageId: string): Promise<void>;
  erase(erasures: readonly Erasure[]): Promise<void>;
  eraseKey(key: string): Promise<void>;
  /** Everything below a namespace of the history. */
  walk(namespace: string): AsyncIterable<[key: string, value: unknown]>;
}

export function createHistoryKeys(open: Stores["open"], ttlMs: number, log: Logger): HistoryKeys {
  const keyv = open(NAMESPACE);
  const readers = createReaders(createDamageLog(log));
  const getMany = (keys: string[]): Promise<unknown[]> => keyv.getMany<unknown>(keys);

  const keys: HistoryKeys = {
    readers,
    getMany,
    async readPosition(id) {
      const key = toIndexKey(id);
      return readers.position(key, await keyv.get<unknown>(key));
    },
    async readEntry(place) {
      return (await keys.readEntries([place]))[0];
    },
    async readEntries(places) {
      const entryKeys = places.map(toEntryKey);
      const values = await getMany(entryKeys);
      return entryKeys.map((key, index) => readers.entry(key, values[index]));
    },
    async writeEntries(entries, head) {
      const conversationId = entries[0]?.position.conversationId;
      if (conversationId === undefined) return;
      const values = [
        ...entries.flatMap(({ position, stored }) => entryValues(position, stored)),
        headValue(conversationId, head),
      ];
      await keyv.setMany(values.map(({ key, value }) => ({ key, value: { v: 1, ...value }, ttl: ttlMs })));
    },
    async rewriteEntry(place, stored) {
      const key = toEntryKey(place);
      const expires = (await keyv.getRaw(key))?.expires;
      const leftMs = typeof expires === "number" ? Math.max(1, expires - Date.now()) : ttlMs;
      await keyv.set(key, { v: 1, ...stored }, leftMs);
    },
    async readHead(conversationId) {
      const key = toHeadKey(conversationId);
      return readers.head(key, (await getMany([key]))[0]);
    },
    async writeHead(conversationId, head) {
      const { key, value } = headValue(conversationId, head);
      await keyv.set(key, { v: 1, ...value }, ttlMs);
    },
    async markDeleted(messageId) {
      await keyv.set(toDeletedKey(messageId), { v: 1 }, DELETED_MS);
    },
    async erase(erasures) {
      const found = [...(await ownIndexKeys(keys, erasures)), ...erasures.flatMap(({ authorKeys }) => authorKeys)];
      const left = erasures.filter(({ after }) => after !== undefined);
      const gone = erasures.filter(({ after }) => after === undefined);
      // Entries go first: after a crash in between, the keys that are left find nothing, and are erased the next time.
      if (left.length > 0) {
        await keyv.setMany(left.map(({ entryKey, after }) => ({ key: entryKey, value: { v: 1, after }, ttl: ttlMs })));
      }
      await keyv.deleteMany([...gone.map(({ entryKey }) => entryKey), ...found]);
    },
    async eraseKey(key) {
      await keyv.delete(key);
    },
    walk: (namespace) => walk(open(`${NAMESPACE}:${namespace}`)),
  };
  return keys;
}

/** The keys of those ids that find the entries which go; an id that finds another one by now stays with that one. */
async function ownIndexKeys(keys: HistoryKeys, erasures: readonly Erasure[]): Promise<string[]> {
  const owners = new Map(erasures.flatMap(({ entryKey, ids }) => ids.map((id) => [toIndexKey(id), entryKey] as const)));
  if (owners.size === 0) return [];
  const indexKeys = [...owners.keys()];
  const values = await keys.getMany(indexKeys);
  return indexKeys.filter((key, index) => {
    const position = keys.readers.position(key, values[index]);
    return position !== undefined && toEntryKey(position) === owners.get(key);
  });
}

interface Value {
  key: string;
  value: object;
}

function entryValues(position: Position, stored: StoredEntry): Value[] {
  const ids = [...new Set([position.entryId, ...stored.aliases])];
  const entryKey = toEntryKey(position);
  const authorValue = { ...position, aliases: stored.aliases, at: stored.entry.at };
  return [
    { key: entryKey, value: stored },
    ...ids.map((id) => ({ key: toIndexKey(id), value: position })),
    ...toAuthorKeys(stored.entry, entryKey).map((key) => ({ key, value: authorValue })),
  ];
}

function headValue(conversationId: string, head: Head): Value {
  return { key: toHeadKey(conversationId), value: head };
}
