import { EventEmitter } from "node:events";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import { type Clock, createClock } from "./clock.ts";
import { emptyLog, transact } from "./database.ts";

/** Time between two sweeps of expired rows. Reads ignore expired rows. */
const SWEEP_INTERVAL_MS = 60_000;
/** Maximum number of rows that one statement deletes, because a statement blocks the event loop. */
const SWEEP_ROWS = 1_000;
const ITERATOR_ROWS = 100;
const ERASED_ROWS = 500;
/** A key that sorts after all others. */
const LAST_KEY = "\u{10FFFF}";

/** A store for Keyv. Values are texts, because Keyv serializes. A call changes all its keys in one step, or none. */
export interface TextStore {
  opts: { dialect: string; url: string };
  namespace: string | undefined;
  on(event: string, listener: (error: unknown) => void): unknown;
  get(key: string): Promise<string | undefined>;
  getMany(keys: string[]): Promise<Array<string | undefined>>;
  set(key: string, value: string, ttl?: number): Promise<boolean>;
  setMany(entries: TextEntry[]): Promise<boolean>;
  delete(key: string): Promise<boolean>;
  /** Resolves to true if any of the keys existed. */
  deleteMany(keys: string[]): Promise<boolean>;
  has(key: string): Promise<boolean>;
  hasMany(keys: string[]): Promise<boolean[]>;
  clear(): Promise<void>;
  iterator(namespace?: string): AsyncGenerator<[key: string, value: string], void>;
  disconnect(): Promise<void>;
}

/** A store for Keyv that also finds entries by their owners. */
export type OwnedStore = TextStore & OwnedTexts;

export interface TextEntry {
  key: string;
  value: string;
  /** Absent: the entry never expires. */
  ttl?: number | undefined;
  /** The names of the indexes that find the entry. They replace the entry's earlier indexes. */
  of?: readonly string[] | undefined;
  /** Set if the key must exist already. Without `ttl` the entry then keeps its expiry. */
  isRewrite?: true | undefined;
  /** Set if this is the first text of a list that `append` extends. The list replaces an existing value. */
  isList?: true | undefined;
}

/** Finds entries by the names of their indexes. `prefix` limits a call to keys that start with it. */
export interface OwnedTexts {
  /** Makes all writes and removals in one step. Resolves to false, without a change, if a key to rewrite is missing. */
  write(entries: readonly TextEntry[], removed: readonly string[]): Promise<boolean>;
  /** Adds a text of one line to a list. Checks no right. Resolves to false if the list does not exist. */
  append(key: string, text: string): Promise<boolean>;
  readAppended(key: string): Promise<string[]>;
  /** Lists the keys that an index finds; the entry that expires last is last. A key can change owners meanwhile. */
  keysOf(index: string, prefix: string): Promise<string[]>;
  readOf(of: Indexes, prefix: string): AsyncIterable<[key: string, value: string]>;
  /**
   * Erases the entries that all of these indexes find, also those written meanwhile. Resolves to the number of entries.
   */
  eraseOf(of: Indexes, prefix: string): Promise<number>;
  /** Lists the indexes whose names start with `prefix` and that find an entry, or found one until recently. */
  indexes(prefix: string): AsyncIterable<string>;
}

/** One index, or two indexes that must both find the entry. */
export type Indexes = readonly [string, string?];

export interface SqliteStoreOptions {
  /** Created if it is missing. The name must consist of letters, digits and underscores. */
  table: string;
  /** The clock that expires entries. Absent: the database's own clock. */
  now?: Clock;
}

interface Statements {
  get: StatementSync;
  set: StatementSync;
  delete: StatementSync;
  page: StatementSync;
  clear: StatementSync;
  sweep: StatementSync;
  rewrite: StatementSync;
  append: StatementSync;
  has: StatementSync;
  own: StatementSync;
  disown: StatementSync;
  keysOf: StatementSync;
  pageOf: StatementSync;
  eraseOf: StatementSync;
  indexes: StatementSync;
}

/**
 * A store for Keyv in one table of an open database. A call commits all its changes together before it resolves.
 * `iterator` and `clear` cover the keys that start with `{namespace}:`, or all keys without a namespace. `disconnect`
 * ends the sweeps of expired rows; the database belongs to the caller and stays open.
 */
export function createSqliteStore(
  database: DatabaseSync,
  { table, now = createClock(database) }: SqliteStoreOptions,
): OwnedStore {
  createTable(database, table);
  const statements = prepareStatements(database, table);
  const events = new EventEmitter();
  let isSweeping = false;
  const sweeping = setInterval(() => {
    if (isSweeping) return;
    isSweeping = true;
    sweep(database, statements, now)
      .catch((error: unknown) => {
        // The next sweep makes up for a failed one. An "error" event without a listener would end the process.
        if (events.listenerCount("error") > 0) events.emit("error", error);
      })
      .finally(() => {
        isSweeping = false;
      });
  }, SWEEP_INTERVAL_MS).unref();

  const store: OwnedStore = {
    opts: { dialect: "sqlite", url: `sqlite://${table}` },
    namespace: undefined,
    on: (event, listener) => events.on(event, listener),
    async disconnect() {
      clearInterval(sweeping);
    },
    async clear() {
      const [from, to] = rangeOf(store.namespace);
      statements.clear.run(from, to);
    },
    iterator: (namespace) => iterate(statements.page, now, namespace),
    ...keyOperations(database, statements, now),
    ...ownedOperations(statements, now),
  };
  return store;
}

function keyOperations(database: DatabaseSync, statements: Statements, now: Clock) {
  const get = (key: string) => statements.get.get(key, now())?.["value"] as string | undefined;
  const remove = (key: string) => Number(statements.delete.run(key).changes) > 0;

  function set({ key, value, ttl, of = [], isRewrite }: TextEntry): void {
    if (isRewrite && ttl === undefined) return void statements.rewrite.run(value, key);
    statements.set.run(key, value, ttl === undefined ? null : now() + ttl);
    statements.disown.run(key);
    for (const owner of of) statements.own.run(owner, key);
  }

  async function write(entries: readonly TextEntry[], removed: readonly string[]): Promise<boolean> {
    return transact(database, () => {
      const rewritten = entries.filter(({ isRewrite }) => isRewrite);
      if (rewritten.some(({ key }) => statements.has.get(key, now()) === undefined)) return false;
      for (const entry of entries) set(entry);
      for (const key of removed) remove(key);
      return true;
    });
  }

  return {
    async get(key: string) {
      return get(key);
    },
    async getMany(keys: string[]) {
      return transact(database, () => keys.map(get));
    },
    write,
    append: async (key: string, text: string) => statements.append.run(`\n${text}`, key, now()).changes > 0,
    readAppended: async (key: string) => (get(key) ?? "").split("\n").slice(1),
    set: (key: string, value: string, ttl?: number) => write([{ key, value, ttl }], []),
    setMany: (entries: TextEntry[]) => write(entries, []),
    async delete(key: string) {
      return remove(key);
    },
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

function ownedOperations(statements: Statements, now: Clock) {
  return {
    async keysOf(index: string, prefix: string) {
      return statements.keysOf.all(index, prefix, prefix + LAST_KEY, now()).map(({ key }) => String(key));
    },
    async *readOf([first, second]: Indexes, prefix: string): AsyncGenerator<[string, string], void> {
      let from = prefix;
      for (;;) {
        const rows = statements.pageOf.all(first, second ?? null, from, prefix + LAST_KEY, now());
        // An expired entry has no value.
        for (const { key, value } of rows) if (typeof value === "string") yield [String(key), value];
        const last = rows.at(-1);
        if (last === undefined || rows.length < ITERATOR_ROWS) return;
        from = `${String(last["key"])}\0`;
        await setImmediate();
      }
    },
    async eraseOf([first, second]: Indexes, prefix: string) {
      for (let erased = 0; ; await setImmediate()) {
        const count = Number(statements.eraseOf.run(first, second ?? null, prefix, prefix + LAST_KEY).changes);
        erased += count;
        if (count < ERASED_ROWS) return erased;
      }
    },
    async *indexes(prefix: string) {
      for (const { owner } of statements.indexes.all(prefix, prefix + LAST_KEY)) yield String(owner);
    },
  };
}

function createTable(database: DatabaseSync, table: string): void {
  if (!/^\w+$/.test(table)) throw new TypeError(`"${table}" is not a valid table name`);
  database.exec(`
    CREATE TABLE IF NOT EXISTS ${table} (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires_at INTEGER) STRICT;
    CREATE INDEX IF NOT EXISTS ${table}_expires_at ON ${table} (expires_at) WHERE expires_at IS NOT NULL;
    CREATE TABLE IF NOT EXISTS ${table}_owner (
      owner TEXT NOT NULL,
      key TEXT NOT NULL REFERENCES ${table} (key) ON DELETE CASCADE,
      PRIMARY KEY (owner, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS ${table}_owner_key ON ${table}_owner (key);
  `);
}

function prepareStatements(database: DatabaseSync, table: string): Statements {
  const live = "(expires_at IS NULL OR expires_at > ?)";
  const owned = `${table}_owner AS o WHERE o.owner = ?1 AND o.key >= ?3 AND o.key < ?4
    AND (?2 IS NULL OR EXISTS (SELECT 1 FROM ${table}_owner AS other WHERE other.owner = ?2 AND other.key = o.key))`;
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
    rewrite: database.prepare(`UPDATE ${table} SET value = ? WHERE key = ?`),
    append: database.prepare(`UPDATE ${table} SET value = value || ? WHERE key = ? AND ${live}`),
    has: database.prepare(`SELECT 1 FROM ${table} WHERE key = ? AND ${live}`),
    own: database.prepare(`INSERT OR IGNORE INTO ${table}_owner (owner, key) VALUES (?, ?)`),
    disown: database.prepare(`DELETE FROM ${table}_owner WHERE key = ?`),
    keysOf: database.prepare(
      `SELECT key FROM ${table} JOIN ${table}_owner USING (key)
       WHERE owner = ? AND key >= ? AND key < ? AND ${live} ORDER BY expires_at, key`,
    ),
    pageOf: database.prepare(
      `SELECT o.key, (SELECT value FROM ${table} WHERE key = o.key AND (expires_at IS NULL OR expires_at > ?5)) AS value
       FROM ${owned} ORDER BY o.key LIMIT ${ITERATOR_ROWS}`,
    ),
    eraseOf: database.prepare(`DELETE FROM ${table} WHERE key IN (SELECT o.key FROM ${owned} LIMIT ${ERASED_ROWS})`),
    indexes: database.prepare(`SELECT DISTINCT owner FROM ${table}_owner WHERE owner >= ? AND owner < ?`),
    sweep: database.prepare(
      `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE expires_at <= ? LIMIT ${SWEEP_ROWS})`,
    ),
  };
}

/** Reads in pages, so that rows can change and other work can run in between. */
async function* iterate(
  page: StatementSync,
  now: Clock,
  namespace: string | undefined,
): AsyncGenerator<[string, string], void> {
  let [from, to] = rangeOf(namespace);
  for (;;) {
    const rows = page.all(from, to, now());
    for (const { key, value } of rows) yield [String(key), String(value)];
    const last = rows.at(-1);
    if (last === undefined || rows.length < ITERATOR_ROWS) return;
    from = `${String(last["key"])}\0`;
    await setImmediate();
  }
}

/** Returns the first key of a namespace and the end of its keys: ";" is the character after ":". */
function rangeOf(namespace: string | undefined): [from: string, to: string] {
  return namespace === undefined ? ["", LAST_KEY] : [`${namespace}:`, `${namespace};`];
}

/** Deletes all expired rows in batches, because a single statement would block the event loop for too long. */
async function sweep(database: DatabaseSync, statements: Statements, now: Clock): Promise<void> {
  while (database.isOpen && Number(statements.sweep.run(now()).changes) === SWEEP_ROWS) await setImmediate();
  if (database.isOpen) emptyLog(database);
}
