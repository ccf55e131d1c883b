import { EventEmitter } from "node:events";
import type { DatabaseSync } from "node:sqlite";
import { Keyv } from "keyv";
import type { Logger } from "pino";
import { z } from "zod";
import { createKeyedQueue } from "../concurrency/keyed-queue.ts";
import type { Right } from "../port/right.ts";
import { type Clock, createClock } from "./clock.ts";
import { type Counters, createSqliteCounters } from "./counters.ts";
import { createOwnedData, createOwnedEntries, type OwnedData, type OwnedEntries, type Texts } from "./owned.ts";
import { createRedisStore, type OpenStore } from "./redis.ts";
import type { RedisConnection } from "./redis-connection.ts";
import { createRedisCounters } from "./redis-counters.ts";
import { createSharedTurns, type RunInTurn } from "./redis-turns.ts";
import { createSqliteStore, type OwnedStore, type TextStore } from "./sqlite.ts";
import { parseStored } from "./values.ts";
import { migrate, STORED_VERSION } from "./version.ts";

/** Separates the store's keys from those of the queue and of other programs in the same Redis. */
const REDIS_ROOT = "palaver";
const SQLITE_TABLE = "keyv";

export interface StoresOptions {
  /** The address of Redis or Valkey. Undefined: the store uses the embedded database. */
  redisUrl: string | undefined;
  /** The caller owns the database; it stays open after `close`. */
  database: DatabaseSync;
  log: Logger;
}

/** A namespace of the store: a Keyv whose entries can belong to people and conversations. */
export type Entries = Keyv & OwnedEntries;

/** The store, opened for writes under one right. */
export interface Stores extends OwnedData {
  /**
   * Opens one namespace; this is cheap. Every operation rejects within a few seconds if the store is unavailable.
   * `setMany` and `deleteMany` change all keys or none. Values are JSON. A missing value reads as undefined; a value
   * that is invalid or from a newer version reads as null. Namespaces nest: key `b:c` in `a` is key `c` in `a:b`.
   * Entries expire by the store's clock, so jumps of the system's clock don't matter.
   */
  open: (namespace: string) => Entries;
  /** The clock by which entries expire: Unix milliseconds without the jumps of the system's clock. */
  now: Clock;
  /** Tries to write. Resolves to true if the store accepted the write, else to false, also when `signal` aborts. */
  isReachable: (signal: AbortSignal) => Promise<boolean>;
  close: () => Promise<void>;
  counters: Counters;
  /** The connection to the store that several processes share. Absent for the embedded store. */
  shared?: RedisConnection;
  /**
   * Runs a task that reads, changes and writes back. Among all processes, only one task of the same name runs at a
   * time. The task must write through the `open` that it gets; these writes fail after the task's turn has ended.
   */
  inTurn: <T>(name: string, task: (open: Stores["open"]) => Promise<T>) => Promise<T>;
  /** Returns the same store for writes under another right. */
  under: (right: Right) => Stores;
}

/** After a successful write, the store counts as reachable for this long. */
const PROBED_MS = 1_000;

/** Uses Redis if it gets an address, or else the embedded database. Does not wait for a connection. */
export function createStores({ redisUrl, database, log }: StoresOptions, right: Right): Stores {
  const { storeUnder, now, shared, isReachable, close }: OpenStore =
    redisUrl === undefined ? createEmbeddedStore(database) : createRedisStore(redisUrl, log);
  const root = redisUrl === undefined ? "" : `${REDIS_ROOT}:`;

  const turns = shared === undefined ? createLocalTurns() : createSharedTurns(shared, `${REDIS_ROOT}:turn:`);
  const countersUnder = toCounters(shared, database, now);

  function openUnder(store: OwnedStore, namespace: string): Entries {
    const keyv = new Keyv({
      store: createNamespaceView(store, root + namespace),
      namespace: root + namespace,
      // Keyv's own prefix differs between calls with one key and with many, so the namespace view adds ours.
      useKeyPrefix: false,
      throwOnErrors: true,
      serialize: ({ value }) => texts.toText(value),
      // Omits `expires`, because Keyv would compare it with the system's clock. The store itself expires entries.
      deserialize: (text) => ({ value: texts.toValue(namespace, text) as never, expires: undefined }),
    });
    return Object.assign(keyv, createOwnedEntries(store, namespace, `${root}${namespace}:`, texts));
  }

  function under(right: Right): Stores {
    const store = storeUnder(right);
    return {
      open: (namespace) => openUnder(store, namespace),
      ...createOwnedData(store, root, texts),
      now,
      inTurn: (name, task) =>
        turns(right, name, (held) => {
          const inTurn = storeUnder(held);
          return task((namespace) => openUnder(inTurn, namespace));
        }),
      counters: countersUnder(right),
      shared,
      isReachable: (signal) => Promise.race([whenAborted(signal), isReachable()]),
      close,
      under,
    };
  }

  return under(right);
}

function toCounters(
  shared: RedisConnection | undefined,
  database: DatabaseSync,
  now: Clock,
): (right: Right) => Counters {
  if (shared !== undefined) return (right) => createRedisCounters(shared, right);
  const counters = createSqliteCounters(database, now);
  return () => counters;
}

function createLocalTurns(): RunInTurn {
  const { run } = createKeyedQueue();
  return (right, name, task) => run(name, () => task(right));
}

function createEmbeddedStore(database: DatabaseSync): OpenStore {
  const now = createClock(database);
  const store = createSqliteStore(database, { table: SQLITE_TABLE, now });
  database.exec(
    "CREATE TABLE IF NOT EXISTS store_probe (only INTEGER PRIMARY KEY CHECK (only = 1), at INTEGER NOT NULL)",
  );
  const probe = database.prepare("INSERT OR REPLACE INTO store_probe (only, at) VALUES (1, ?)");
  let writtenAt = Number.NEGATIVE_INFINITY;
  return {
    storeUnder: () => store,
    now,
    async isReachable() {
      // Writes at most once a second: any visitor can trigger this, and a write to disk blocks everything else.
      if (performance.now() - writtenAt < PROBED_MS) return true;
      try {
        // Only a commit proves that the disk is neither read-only nor full.
        probe.run(Date.now());
        writtenAt = performance.now();
        return true;
      } catch {
        return false;
      }
    },
    close: () => store.disconnect(),
  };
}

const stored = z.object({ v: z.int(), value: z.unknown() });

const texts: Texts = {
  toText: (value) => JSON.stringify({ v: STORED_VERSION, value }),
  /** Never throws for a damaged value: an error would end Keyv's iteration and lose all later values. */
  toValue(namespace, text) {
    // In SQLite, the text of a list starts with the entry's own value, on the first line.
    const [first = ""] = text.split("\n", 1);
    const found = parseStored(stored, first);
    return (found && migrate(namespace, found.v, found.value)) ?? null;
  },
};

function whenAborted(signal: AbortSignal): Promise<false> {
  if (signal.aborted) return Promise.resolve(false);
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(false), { once: true }));
}

/** How many keys `clear` deletes in one step. */
const CLEAR_KEYS = 500;

/**
 * Shows one namespace of a shared store as a separate store. The key `k` in the namespace `n` is `n:k` in the shared
 * one.
 */
export function createNamespaceView(base: TextStore, namespace: string): TextStore {
  const prefix = `${namespace}:`;
  const toKey = (key: string) => prefix + key;

  async function* iterator(): AsyncGenerator<[string, string], void> {
    for await (const [key, value] of base.iterator(namespace)) {
      yield [key.slice(prefix.length), value];
    }
  }

  return {
    opts: base.opts,
    namespace,
    // Registers no listeners, because the base reports its errors to its own, and each view would add one.
    on: () => new EventEmitter(),
    iterator,
    get: (key) => base.get(toKey(key)),
    getMany: (keys) => base.getMany(keys.map(toKey)),
    set: (key, value, ttl) => base.set(toKey(key), value, ttl),
    setMany: (entries) => base.setMany(entries.map((entry) => ({ ...entry, key: toKey(entry.key) }))),
    delete: (key) => base.delete(toKey(key)),
    deleteMany: (keys) => base.deleteMany(keys.map(toKey)),
    has: (key) => base.has(toKey(key)),
    hasMany: (keys) => base.hasMany(keys.map(toKey)),
    async clear() {
      let keys: string[] = [];
      for await (const [key] of iterator()) {
        if (keys.push(toKey(key)) < CLEAR_KEYS) continue;
        await base.deleteMany(keys);
        keys = [];
      }
      if (keys.length > 0) await base.deleteMany(keys);
    },
    async disconnect() {},
  };
}
