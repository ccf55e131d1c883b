import { randomInt, randomUUID } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS local_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    seq INTEGER NOT NULL,
    epoch TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS local_people (
    id TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE
  ) STRICT;
  CREATE TABLE IF NOT EXISTS local_channels (
    id TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    is_deleted INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE TABLE IF NOT EXISTS local_messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    seq INTEGER NOT NULL,
    nonce TEXT NOT NULL UNIQUE,
    channel_id TEXT NOT NULL,
    thread_id INTEGER,
    author_id TEXT,
    asked_by TEXT,
    visible_to TEXT,
    text TEXT NOT NULL,
    is_command INTEGER NOT NULL DEFAULT 0,
    options TEXT NOT NULL DEFAULT '{}',
    buttons TEXT NOT NULL DEFAULT '[]',
    steps TEXT NOT NULL DEFAULT '[]',
    is_streaming INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    edited_at INTEGER,
    moved_behind INTEGER,
    reply_to INTEGER,
    is_hidden INTEGER NOT NULL DEFAULT 0,
    is_deleted INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX IF NOT EXISTS local_messages_seq ON local_messages (seq);
  CREATE INDEX IF NOT EXISTS local_messages_thread ON local_messages (thread_id);
  CREATE INDEX IF NOT EXISTS local_messages_channel ON local_messages (channel_id);
  CREATE INDEX IF NOT EXISTS local_messages_author ON local_messages (author_id);
  CREATE TABLE IF NOT EXISTS local_files (
    id TEXT PRIMARY KEY,
    message_id INTEGER,
    position INTEGER NOT NULL DEFAULT 0,
    name TEXT NOT NULL,
    content_type TEXT NOT NULL,
    width INTEGER,
    height INTEGER,
    alt_text TEXT,
    is_spoiler INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    -- Of files that an earlier version stored, which have no slices.
    bytes BLOB NOT NULL DEFAULT X'',
    size_bytes INTEGER
  ) STRICT;
  CREATE INDEX IF NOT EXISTS local_files_message ON local_files (message_id);
  CREATE TABLE IF NOT EXISTS local_file_slices (
    file_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (file_id, position)
  ) STRICT;
  CREATE TRIGGER IF NOT EXISTS local_files_deleted AFTER DELETE ON local_files
    BEGIN DELETE FROM local_file_slices WHERE file_id = OLD.id; END;
  CREATE TABLE IF NOT EXISTS local_judgements (
    message_id INTEGER NOT NULL,
    author_id TEXT NOT NULL,
    judgement TEXT NOT NULL,
    PRIMARY KEY (message_id, author_id)
  ) STRICT;
  CREATE INDEX IF NOT EXISTS local_judgements_author ON local_judgements (author_id);
  CREATE TABLE IF NOT EXISTS local_outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    author_id TEXT NOT NULL,
    event TEXT NOT NULL,
    change TEXT NOT NULL
  ) STRICT;
`;
/** Columns that tables of an earlier version lack. */
const ADDED_COLUMNS = [
  { table: "local_channels", column: "is_deleted", type: "INTEGER NOT NULL DEFAULT 0" },
  { table: "local_messages", column: "options", type: "TEXT NOT NULL DEFAULT '{}'" },
  { table: "local_messages", column: "moved_behind", type: "INTEGER" },
  { table: "local_messages", column: "steps", type: "TEXT NOT NULL DEFAULT '[]'" },
  { table: "local_messages", column: "reply_to", type: "INTEGER" },
  { table: "local_files", column: "alt_text", type: "TEXT" },
  { table: "local_files", column: "is_spoiler", type: "INTEGER NOT NULL DEFAULT 0" },
  { table: "local_files", column: "size_bytes", type: "INTEGER" },
];

const PEOPLE = [
  { id: "ada", name: "Ada" },
  { id: "ben", name: "Ben" },
  { id: "chie", name: "千恵" },
];
const CHANNELS = ["general", "random"];
/** Messages that a database may hold before its ids could reach those of another one. */
const IDS_APART = 2n ** 20n;

/** As SQLite gives it. */
export type SqlRow = Record<string, unknown>;

export interface Tables {
  database: DatabaseSync;
  /** Differs from one database to the next. */
  epoch: string;
  /** Takes the next change number; call it inside a transaction. */
  nextSeq: () => number;
  /** Number of the newest change. */
  lastSeq: () => number;
  /** Runs synchronous work in one transaction. Never nested. */
  inTransaction: <T>(work: () => T) => T;
}

/** Opens the page's own tables in the process's database, with a few people and channels in new ones. */
export function openTables(database: DatabaseSync, now: () => number): Tables {
  database.exec(SCHEMA);
  addColumns(database);
  database.prepare("INSERT OR IGNORE INTO local_state (id, seq, epoch) VALUES (1, 0, ?)").run(randomUUID());
  const state = database.prepare("SELECT seq, epoch FROM local_state").get();
  const current = database.prepare("SELECT seq FROM local_state");
  const advance = database.prepare("UPDATE local_state SET seq = seq + 1 RETURNING seq");

  const tables: Tables = {
    database,
    epoch: String(state?.["epoch"]),
    lastSeq: () => Number(current.get()?.["seq"]),
    nextSeq: () => Number(advance.get()?.["seq"]),
    inTransaction(work) {
      database.exec("BEGIN IMMEDIATE");
      try {
        const result = work();
        database.exec("COMMIT");
        return result;
      } catch (error) {
        // A failed COMMIT may have ended the transaction already; the first error is the one that matters.
        if (database.isTransaction) database.exec("ROLLBACK");
        throw error;
      }
    },
  };
  if (state?.["seq"] === 0) tables.inTransaction(() => seed(tables, now()));
  return tables;
}

function addColumns(database: DatabaseSync): void {
  const find = database.prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = ?");
  for (const { table, column, type } of ADDED_COLUMNS) {
    if (find.get(table, column) === undefined) database.exec(`ALTER TABLE ${table} ADD COLUMN ${column} ${type}`);
  }
}

function seed({ database, nextSeq }: Tables, at: number): void {
  const addPerson = database.prepare("INSERT INTO local_people (id, seq, name) VALUES (?, ?, ?)");
  for (const { id, name } of PEOPLE) addPerson.run(id, nextSeq(), name);
  const addChannel = database.prepare(
    "INSERT INTO local_channels (id, seq, kind, title, created_at) VALUES (?, ?, 'channel', ?, ?)",
  );
  for (const name of CHANNELS) addChannel.run(name, nextSeq(), name, at);
  // Records kept elsewhere, under the ids of messages, may outlive this database or be shared with another one: a message
  // must never be taken for one that stood there.
  database
    .prepare("INSERT INTO sqlite_sequence (name, seq) VALUES ('local_messages', ?)")
    .run(BigInt(randomInt(2 ** 32)) * IDS_APART);
}
