import { EventEmitter } from "node:events";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import type { KeyvStoreAdapter } from "keyv";
import { type Clock, createClock } from "./clock.ts";
import { emptyLog, transact } from "./database.ts";

/** Between two erasures of expired rows, which are never read. */
const SWEEP_INTERVAL_MS = 60_000;
/** Rows one statement erases: the event loop stands still meanwhile. */
const SWEEP_ROWS = 1_000;
const ITERATOR_ROWS = 100;
/** Above every key. */
const LAST_KEY = "\u{10FFFF}";

/** A Keyv store that does several keys in one step: all of them or none. */
export type BatchStore = KeyvStoreAdapter &
  Required<
    Pick<KeyvStoreAdapter, "setMany" | "getMany" | "deleteMany" | "has" | "hasMany" | "iterator" | "disconnect">
  >;

export interface SqliteStoreOptions {
  /** Created when it is absent. Not quoted: letters, digits and underscores only. */
  table: string;
  /** The clock by which values expire; absent: the database's own. */
  now?: Clock;
}

interface Statements {
  get: StatementSync;
  set: StatementSync;
  delete: StatementSync;
  page: StatementSync;
  clear: StatementSync;
  sweep: StatementSync;
}

/**
 * A store for Keyv in one table of an open database. Whatever a call changes is committed, together, before it
 * resolves. `iterator` and `clear` touch keys that begin with `{namespace}:`, or all when there is no namespace.
 * `disconnect` ends the sweeping; the database stays open, because it belongs to the caller.
 */
export function createSqliteStore(
  database: DatabaseSync,
  { table, now = createClock(database) }: SqliteStoreOptions,
): BatchStore {
  createTable(database, table);
  const statements = prepareStatements(database, table);
  const events = new EventEmitter();
  let isSweeping = false;
  const sweeping = setInterval(() => {
    if (isSweeping) return;
    isSweeping = true;
    sweep(database, statements, now)
      .catch((error: unknown) => {
        // A sweep that fails is done by the next one; without a listener an "error" event would end the process.
        if (events.listenerCount("error") > 0) events.emit("error", error);
      })
      .finally(() => {
        isSweeping = false;
      });
  }, SWEEP_INTERVAL_MS).unref();

  const store = {
    opts: { dialect: "sqlite", url: `sqlite://${table}` },
    namespace: undefined,
    on: (event: string, listener: (...values: unknown[]) => void) => events.on(event, listener),
    async disconnect() {
      clearInterval(sweeping);
    },
    async clear() {
      const [from, to] = rangeOf(store.namespace);
      statements.clear.run(from, to);
    },
    iterator: (namespace?: string) => iterate(statements.page, now, namespace),
    ...keyOperations(database, statements, now),
  };
  // Keyv's type lets the caller choose what a value is; a store only ever has what Keyv serialised.
  return store as unknown as BatchStore;
}

function keyOperations(database: DatabaseSync, statements: Statements, now: Clock) {
  const get = (key: string) => statements.get.get(key, now())?.["value"] as string | undefined;
  const set = (key: string, value: string, ttl: number | undefined) =>
    statements.set.run(key, value, ttl === undefined ? null : now() + ttl);
  const remove = (key: string) => Number(statements.delete.run(key).changes) > 0;

  return {
    async get(key: string) {
      return get(key);
    },
    async getMany(keys: string[]) {
      return transact(database, () => keys.map(get));
    },
    async set(key: string, value: string, ttl?: number) {
      set(key, value, ttl);
    },
    async setMany(entries: Array<{ key: string; value: string; ttl?: number }>) {
      transact(database, () => {
        for (const { key, value, ttl } of entries) set(key, value, ttl);
      });
    },
    async delete(key: string) {
      return remove(key);
    },
    /** Resolves to whether any of them was there. */
    async deleteMany(keys: string[]) {
      return transact(database, () => keys.map(remove).includes(true));
    },
    async has(key: string) {
      return get(key) !== undefined;
    },
    async hasMany(keys: string[]) {
      return transact(database, () => keys.map((key) => get(key) !== undefined));
    },
  };
}

function createTable(database: DatabaseSync, table: string): void {
  if (!/^\w+$/.test(table)) throw new TypeError(`"${table}" is not a name for a table`);
  database.exec(`
    CREATE TABLE IF NOT EXISTS ${table} (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires_at INTEGER) STRICT;
    CREATE INDEX IF NOT EXISTS ${table}_expires_at ON ${table} (expires_at) WHERE expires_at IS NOT NULL;
  `);
}

function prepareStatements(database: DatabaseSync, table: string): Statements {
  const live = "(expires_at IS NULL OR expires_at > ?)";
  return {
    get: database.prepare(`SELECT value FROM ${table} WHERE key = ? AND ${live}`),
    set: database.prepare(
      `INSERT INTO ${table} (key, value, expires_at) VALUES (?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at`,
    ),
    delete: database.prepare(`DELETE FROM ${table} WHERE key = ?`),
    page: database.prepare(
      `SELECT key, value FROM ${table} WHERE key >= ? AND key < ? AND ${live} ORDER BY key LIMIT ${ITERATOR_ROWS}`,
    ),
    clear: database.prepare(`DELETE FROM ${table} WHERE key >= ? AND key < ?`),
    sweep: database.prepare(
      `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE expires_at <= ? LIMIT ${SWEEP_ROWS})`,
    ),
  };
}

/** Reads page by page: rows may change meanwhile, and others get the thread in between. */
async function* iterate(
  page: StatementSync,
  now: Clock,
  namespace: string | undefined,
): AsyncGenerator<[string, string], void> {
  let [from, to] = rangeOf(namespace);
  for (;;) {
    const rows = page.all(from, to, now()) as Array<{ key: string; value: string }>;
    for (const { key, value } of rows) yield [key, value];
    const last = rows.at(-1);
    if (last === undefined || rows.length < ITERATOR_ROWS) return;
    from = `${last.key}\0`;
    await setImmediate();
  }
}

/** The first key and the end of the keys of a namespace; ";" is the character after ":". */
function rangeOf(namespace: string | undefined): [from: string, to: string] {
  return namespace === undefined ? ["", LAST_KEY] : [`${namespace}:`, `${namespace};`];
}

/** Erases all that has expired, a bounded number of rows at a time, so that none pile up however many are written. */
async function sweep(database: DatabaseSync, statements: Statements, now: Clock): Promise<void> {
  while (database.isOpen && Number(statements.sweep.run(now()).changes) === SWEEP_ROWS) await setImmediate();
  if (database.isOpen) emptyLog(database);
}
