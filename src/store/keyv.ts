import type { DatabaseSync } from "node:sqlite";
import { Keyv } from "keyv";
import type { Logger } from "pino";
import { type Clock, createClock } from "./clock.ts";
import { createNamespaceView } from "./namespace.ts";
import { createRedisStore, type Marks, type OpenStore } from "./redis.ts";
import { createSqliteStore } from "./sqlite.ts";

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
  /** Whether the store takes a write, which is tried. Resolves to false also when `signal` aborts first. */
  isReachable: (signal: AbortSignal) => Promise<boolean>;
  close: () => Promise<void>;
  /** What processes share that keep their things in the same store; absent for the embedded one. */
  marks?: Marks;
}

/** Chooses the store: Redis when there is an address, else the embedded database. Does not wait for a connection. */
export function createStores({ redisUrl, database, log }: StoresOptions): Stores {
  const { store, now, marks, isReachable, close } =
    redisUrl === undefined ? createEmbeddedStore(database) : createRedisStore(redisUrl, log);
  const root = redisUrl === undefined ? "" : `${REDIS_ROOT}:`;

  return {
    open: (namespace) =>
      new Keyv({
        store: createNamespaceView(store, root + namespace),
        namespace: root + namespace,
        // The view prefixes keys itself, once; Keyv's own prefix is not the same for one key and for many.
        useKeyPrefix: false,
        throwOnErrors: true,
        serialize: (data) => JSON.stringify(shiftExpiry(data, now() - Date.now())),
        deserialize: (text) => shiftExpiry(parseStored(text), Date.now() - now()),
      }),
    now,
    ...(marks !== undefined && { marks: underRoot(marks) }),
    isReachable: (signal) => Promise.race([whenAborted(signal), isReachable()]),
    close,
  };
}

function underRoot({ claim, set }: Marks): Marks {
  const place = `${REDIS_ROOT}:claims:`;
  return {
    claim: (key, mark, ttlMs) => claim(place + key, mark, ttlMs),
    set: (key, mark, ttlMs) => set(place + key, mark, ttlMs),
  };
}

function createEmbeddedStore(database: DatabaseSync): OpenStore {
  const now = createClock(database);
  const store = createSqliteStore(database, { table: SQLITE_TABLE, now });
  database.exec(
    "CREATE TABLE IF NOT EXISTS store_probe (only INTEGER PRIMARY KEY CHECK (only = 1), at INTEGER NOT NULL)",
  );
  const probe = database.prepare("INSERT OR REPLACE INTO store_probe (only, at) VALUES (1, ?)");
  return {
    store,
    now,
    async isReachable() {
      try {
        // Only what is committed shows that the disk is neither read-only nor full.
        probe.run(Date.now());
        return true;
      } catch {
        return false;
      }
    },
    close: () => store.disconnect(),
  };
}

/** Keyv looks at the system's clock, and deletes what has expired by that; kept with the value is the store's own time. */
function shiftExpiry<T extends { expires?: number | undefined | null }>(data: T, byMs: number): T {
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
