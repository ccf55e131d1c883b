import type { Keyv } from "keyv";
import type { Logger } from "pino";
import {
  createReaders,
  type Head,
  type Position,
  type Readers,
  type StoredEntry,
  toAuthorKeys,
  toEntryKey,
  toHeadKey,
  toIndexKey,
} from "./record.ts";

const NAMESPACE = "history";
/** Keys whose damage was logged, so that each is logged once; beyond this many no more are. */
const MAX_LOGGED_KEYS = 1_000;

type Place = Pick<Position, "conversationId" | "seq">;

/** What the history reads and writes, one call to the store each, all or nothing. */
export interface HistoryKeys {
  readers: Readers;
  getMany(keys: string[]): Promise<unknown[]>;
  readPosition(id: string): Promise<Position | undefined>;
  readEntry(place: Place): Promise<StoredEntry | undefined>;
  readEntries(places: Place[]): Promise<Array<StoredEntry | undefined>>;
  /** Writes an entry with every key that finds it, and the head. */
  writeEntry(position: Position, stored: StoredEntry, head: Head): Promise<void>;
  /** Writes what stands at a place that exists, and leaves it the time it has. */
  rewriteEntry(place: Place, stored: StoredEntry): Promise<void>;
  writeHead(conversationId: string, head: Head): Promise<void>;
  /** Erases an entry, the ids that find it, and `more` keys in the same step. */
  erase(entryKey: string, ids: readonly string[], more: readonly string[]): Promise<void>;
  eraseKey(key: string): Promise<void>;
  /** Everything below a namespace of the history. */
  walk(namespace: string): AsyncIterable<[key: string, value: unknown]>;
}

export function createHistoryKeys(open: (namespace: string) => Keyv, ttlMs: number, log: Logger): HistoryKeys {
  const keyv = open(NAMESPACE);
  const readers = createReaders(logOnce(log));
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
    async writeEntry(position, stored, head) {
      const values = [...entryValues(position, stored), headValue(position.conversationId, head)];
      await keyv.setMany(values.map(({ key, value }) => ({ key, value: { v: 1, ...value }, ttl: ttlMs })));
    },
    async rewriteEntry(place, stored) {
      const key = toEntryKey(place);
      const expires = (await keyv.getRaw(key))?.expires;
      const leftMs = typeof expires === "number" ? Math.max(1, expires - Date.now()) : ttlMs;
      await keyv.set(key, { v: 1, ...stored }, leftMs);
    },
    async writeHead(conversationId, head) {
      const { key, value } = headValue(conversationId, head);
      await keyv.set(key, { v: 1, ...value }, ttlMs);
    },
    async erase(entryKey, ids, more) {
      const own = await ownIndexKeys(keys, entryKey, ids);
      await keyv.deleteMany([entryKey, ...own, ...more]);
    },
    async eraseKey(key) {
      await keyv.delete(key);
    },
    async *walk(namespace) {
      const iterator = open(`${NAMESPACE}:${namespace}`).iterator;
      if (iterator === undefined) throw new TypeError("The store of the history cannot be walked through.");
      yield* iterator(undefined) as AsyncIterable<[string, unknown]>;
    },
  };
  return keys;
}

/** The keys of those ids that find this entry; an id that finds another one by now stays with that one. */
async function ownIndexKeys(keys: HistoryKeys, entryKey: string, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const indexKeys = [...new Set(ids.map(toIndexKey))];
  const values = await keys.getMany(indexKeys);
  return indexKeys.filter((key, index) => {
    const position = keys.readers.position(key, values[index]);
    return position !== undefined && toEntryKey(position) === entryKey;
  });
}

interface Value {
  key: string;
  value: object;
}

function entryValues(position: Position, stored: StoredEntry): Value[] {
  const ids = [...new Set([position.entryId, ...stored.aliases])];
  const entryKey = toEntryKey(position);
  const authorValue = { ...position, aliases: stored.aliases };
  return [
    { key: entryKey, value: stored },
    ...ids.map((id) => ({ key: toIndexKey(id), value: position })),
    ...toAuthorKeys(stored.entry, entryKey).map((key) => ({ key, value: authorValue })),
  ];
}

function headValue(conversationId: string, head: Head): Value {
  return { key: toHeadKey(conversationId), value: head };
}

function logOnce(log: Logger): (key: string) => void {
  const logged = new Set<string>();
  return (key) => {
    if (logged.has(key) || logged.size >= MAX_LOGGED_KEYS) return;
    logged.add(key);
    log.error({ key }, "a stored value cannot be read and counts as absent");
  };
}
