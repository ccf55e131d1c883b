import type { Logger } from "pino";
import type { Stores } from "../store/keyv.ts";
import type { OwnedEntry, Owner } from "../store/owned.ts";
import { createDamageLog, walk } from "../store/values.ts";
import {
  createReaders,
  type ErasedEntry,
  type Head,
  ownersOf,
  type Position,
  type Readers,
  readEntryKey,
  type StoredEntry,
  toDeletedKey,
  toEntryKey,
  toHeadKey,
  toIndexKey,
} from "./record.ts";

const NAMESPACE = "history";
/** Longer than any platform redelivers an event. Slack does for an hour, or a day if delayed events are enabled. */
const DELETED_MS = 25 * 3_600_000;

export type Place = Pick<Position, "conversationId" | "seq">;

export interface PlacedEntry {
  position: Position;
  stored: StoredEntry;
}

export interface FoundEntry extends Place {
  entryKey: string;
}

/** An entry to erase, with the ids that find it. */
export interface Erasure {
  entryKey: string;
  ids: readonly string[];
  /** Number of the entry before the erased entry, to keep in a small record. Undefined: no record is kept. */
  after: number | undefined;
}

/** Reads and writes the history. Each method makes one call to the store, which succeeds or fails as a whole. */
export interface HistoryKeys {
  readers: Readers;
  getMany(keys: string[]): Promise<unknown[]>;
  readPosition(id: string): Promise<Position | undefined>;
  readEntry(place: Place): Promise<StoredEntry | ErasedEntry | undefined>;
  readEntries(places: Place[]): Promise<Array<StoredEntry | ErasedEntry | undefined>>;
  /** Writes entries of one conversation, all keys that find them, and the conversation's head. */
  writeEntries(entries: readonly PlacedEntry[], head: Head): Promise<void>;
  /** Rewrites an entry without changing when it expires. */
  rewriteEntry(place: Place, stored: StoredEntry): Promise<void>;
  readHead(conversationId: string): Promise<Head | undefined>;
  writeHead(conversationId: string, head: Head): Promise<void>;
  markDeleted(messageId: string): Promise<void>;
  erase(erasures: readonly Erasure[]): Promise<void>;
  /** Finds the entries about a person, newest last, without reading them. */
  find(owner: Owner): Promise<FoundEntry[]>;
  readFound(found: readonly FoundEntry[]): Promise<Array<StoredEntry | ErasedEntry | undefined>>;
  /** Erases everything about a person, including entries that are written in the meantime. */
  eraseOf(owner: Owner): Promise<void>;
  walk(namespace: string): AsyncIterable<[key: string, value: unknown]>;
}

/** Runs a change of one conversation after its earlier changes. The change must use the keys that it gets. */
export type RunInConversation = <T>(conversationId: string, task: (keys: HistoryKeys) => Promise<T>) => Promise<T>;

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
      const placed = entries.flatMap(({ position, stored }) => toEntries(position, stored));
      const written = [...placed, { key: toHeadKey(conversationId), value: head }];
      await keyv.write(written.map((entry) => ({ ...entry, ttlMs })));
    },
    async rewriteEntry(place, stored) {
      const owner = ownersOf(stored.entry);
      await keyv.put({ key: toEntryKey(place), value: stored, owner, isRewrite: true });
    },
    async readHead(conversationId) {
      const key = toHeadKey(conversationId);
      return readers.head(key, (await getMany([key]))[0]);
    },
    async writeHead(conversationId, head) {
      await keyv.put({ key: toHeadKey(conversationId), value: head, ttlMs });
    },
    async markDeleted(messageId) {
      await keyv.put({ key: toDeletedKey(messageId), value: true, ttlMs: DELETED_MS });
    },
    async erase(erasures) {
      const left = erasures.filter(({ after }) => after !== undefined);
      const gone = erasures.filter(({ after }) => after === undefined);
      await keyv.write(
        left.map(({ entryKey, after }) => ({ key: entryKey, value: { after }, ttlMs })),
        [...gone.map(({ entryKey }) => entryKey), ...(await ownIndexKeys(keys, erasures))],
      );
    },
    async find(owner) {
      return (await keyv.keysOf(owner)).flatMap((key) => readEntryKey(key) ?? []);
    },
    async readFound(found) {
      const values = await getMany(found.map(({ entryKey }) => entryKey));
      return found.map(({ entryKey }, index) => readers.entry(entryKey, values[index]));
    },
    eraseOf: async (owner) => void (await keyv.eraseOf({ owner })),
    walk: (namespace) => walk(open(`${NAMESPACE}:${namespace}`)),
  };
  return keys;
}

/** Returns the index keys of erased entries, except keys that now lead to another entry. */
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

/** Returns the keys and values for an entry. They belong to the people whom the entry is about. */
function toEntries(position: Position, stored: StoredEntry): OwnedEntry[] {
  const owner = ownersOf(stored.entry);
  const ids = [...new Set([position.entryId, ...stored.aliases])];
  return [
    { key: toEntryKey(position), value: stored, owner },
    ...ids.map((id) => ({ key: toIndexKey(id), value: position, owner })),
  ];
}
