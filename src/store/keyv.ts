import { EventEmitter } from "node:events";
import type { DatabaseSync } from "node:sqlite";
import { Keyv } from "keyv";
import type { Logger } from "pino";
import { createKeyedQueue, type KeyedQueue } from "../concurrency/keyed-queue.ts";
import { type Clock, createClock } from "./clock.ts";
import { type Counters, createSqliteCounters } from "./counters.ts";
import { createRedisStore, type OpenStore } from "./redis.ts";
import type { RedisConnection } from "./redis-connection.ts";
import { createRedisCounters } from "./redis-counters.ts";
import { createSharedTurns } from "./redis-turns.ts";
import { type BatchStore, createSqliteStore } from "./sqlite.ts";

/** Keeps our keys apart from those of other programs, and of the queue, on the same Redis. */
const REDIS_ROOT = "palaver";
const SQLITE_TABLE = "keyv";

export interface StoresOptions {
  /** Redis or Valkey; undefined: the embedded database. */
  redisUrl: string | undefined;
  /** Stays open after `close`: it belongs to the caller. */
  database: DatabaseSync;
  log: Logger;
}

export interface Stores {
  /**
   * A Keyv over one namespace. Cheap: open it wherever it is needed. Every operation rejects when the store does not
   * answer, within a few seconds. `setMany` and `deleteMany` do all or nothing. Values are JSON; one that cannot be
   * parsed reads as null, one that is absent as undefined. Namespaces nest: key `b:c` of `a` is key `c` of `a:b`.
   */
  open: (namespace: string) => Keyv;
  /** The time by which things grow old here, like Unix milliseconds. Where the system's clock jumps, it does not. */
  now: Clock;
  /** Tries a write and resolves to whether the store took it; to false also when `signal` aborts first. */
  isReachable: (signal: AbortSignal) => Promise<boolean>;
  close: () => Promise<void>;
  /** Sums that all processes of the store add to. */
  counters: Counters;
  /** The connection to what several processes share; absent for the embedded store. */
  shared?: RedisConnection;
  /** Turns that hold among all processes of the store: what is read, changed and written back is to be done in one. */
  inTurn: KeyedQueue["run"];
}

/** A write that went well holds so long for all who ask. */
const PROBED_MS = 1_000;

/** Chooses the store: Redis when there is an address, else the embedded database. Does not wait for a connection. */
export function createStores({ redisUrl, database, log }: StoresOptions): Stores {
  const { store, now, untilTimed, shared, isReachable, close }: OpenStore =
    redisUrl === undefined ? createEmbeddedStore(database) : createRedisStore(redisUrl, log);
  const toText = (data: Stored) => JSON.stringify(shiftExpiry(data, now() - Date.now()));
  const root = redisUrl === undefined ? "" : `${REDIS_ROOT}:`;

  return {
    open: (namespace) =>
      new Keyv({
        store: createNamespaceView(store, root + namespace),
        namespace: root + namespace,
        // The view prefixes keys itself, once; Keyv's own prefix is not the same for one key and for many.
        useKeyPrefix: false,
        throwOnErrors: true,
        serialize: (data) => untilTimed?.()?.then(() => toText(data)) ?? toText(data),
        deserialize: (text) => shiftExpiry(parseStored(text), Date.now() - now()),
      }),
    now,
    inTurn: shared === undefined ? createKeyedQueue().run : createSharedTurns(shared, `${REDIS_ROOT}:turn:`),
    counters: shared === undefined ? createSqliteCounters(database, now) : createRedisCounters(shared, now),
    shared,
    isReachable: (signal) => Promise.race([whenAborted(signal), isReachable()]),
    close,
  };
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
    store,
    now,
    async isReachable() {
      // Anybody may ask, and while the disk is written to nothing else is done.
      if (performance.now() - writtenAt < PROBED_MS) return true;
      try {
        // Only what is committed shows that the disk is neither read-only nor full.
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

interface Stored {
  expires?: number | undefined | null;
}

/** Keyv looks at the system's clock, and deletes what has expired by that; kept with the value is the store's own time. */
function shiftExpiry<T extends Stored>(data: T, byMs: number): T {
  return typeof data.expires === "number" ? { ...data, expires: data.expires + byMs } : data;
}

/** Keyv would throw on a damaged value in the middle of an iteration, and take the rest of it along. */
function parseStored(text: string): { value: never; expires: number | undefined } {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null && "value" in parsed) {
      return parsed as { value: never; expires: number | undefined };
    }
  } catch {
    // Reads as null below, like any other text that Keyv did not write.
  }
  return { value: null as never, expires: undefined };
}

function whenAborted(signal: AbortSignal): Promise<false> {
  if (signal.aborted) return Promise.resolve(false);
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(false), { once: true }));
}

/** Keys that `clear` deletes in one step. */
const CLEAR_KEYS = 500;

/**
 * One namespace of a shared store. Keys are stored as `{namespace}:{key}`, so key `b:c` of `a` is key `c` of `a:b`:
 * keys found by a walk can be written in one step with others.
 */
export function createNamespaceView(base: BatchStore, namespace: string): BatchStore {
  const prefix = `${namespace}:`;
  const toKey = (key: string) => prefix + key;

  async function* iterator(): AsyncGenerator<[string, string], void> {
    for await (const [key, value] of base.iterator<string>(namespace)) {
      // A key that expired since it was listed has no value.
      if (key !== undefined && value !== undefined) yield [key.slice(prefix.length), value];
    }
  }

  const view = {
    opts: base.opts,
    namespace,
    // The base tells its own listeners; a listener for each view would pile up.
    on: () => new EventEmitter(),
    iterator,
    get: (key: string) => base.get(toKey(key)),
    getMany: (keys: string[]) => base.getMany(keys.map(toKey)),
    set: (key: string, value: string, ttl?: number) => base.set(toKey(key), value, ttl),
    setMany: (entries: Array<{ key: string; value: string; ttl?: number }>) =>
      base.setMany(entries.map((entry) => ({ ...entry, key: toKey(entry.key) }))),
    delete: (key: string) => base.delete(toKey(key)),
    deleteMany: (keys: string[]) => base.deleteMany(keys.map(toKey)),
    has: (key: string) => base.has(toKey(key)),
    hasMany: (keys: string[]) => base.hasMany(keys.map(toKey)),
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
  return view as unknown as BatchStore;
}
