import { randomInt, randomUUID } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS local_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    seq INTEGER NOT NULL,
    epoch TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS local_channels (
    id TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    title TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    is_deleted INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE TABLE IF NOT EXISTS local_messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    seq INTEGER NOT NULL,
    nonce TEXT NOT NULL UNIQUE,
    channel_id TEXT NOT NULL,
    author_id TEXT,
    visible_to TEXT,
    text TEXT NOT NULL,
    is_command INTEGER NOT NULL DEFAULT 0,
    options TEXT NOT NULL DEFAULT '{}',
    buttons TEXT NOT NULL DEFAULT '[]',
    steps TEXT NOT NULL DEFAULT '[]',
    is_streaming INTEGER NOT NULL DEFAULT 0,
    judgement TEXT,
    created_at INTEGER NOT NULL,
    edited_at INTEGER,
    moved_behind INTEGER,
    reply_to INTEGER,
    is_hidden INTEGER NOT NULL DEFAULT 0,
    is_deleted INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX IF NOT EXISTS local_messages_seq ON local_messages (seq);
  CREATE INDEX IF NOT EXISTS local_messages_channel ON local_messages (channel_id);
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
    size_bytes INTEGER NOT NULL
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
  CREATE TABLE IF NOT EXISTS local_outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    event TEXT NOT NULL,
    change TEXT NOT NULL
  ) STRICT;
`;
/** A database can hold this many messages before its ids can reach those of another database. */
const IDS_APART = 2n ** 20n;

export type SqlRow = Record<string, unknown>;

export interface Tables {
  database: DatabaseSync;
  /** A random id of the database. */
  epoch: string;
  /** Returns the next change number. Call it inside a transaction. */
  nextSeq: () => number;
  lastSeq: () => number;
  /** Runs synchronous work in one transaction. Calls must not be nested. */
  inTransaction: <T>(work: () => T) => T;
}

export function openTables(database: DatabaseSync): Tables {
  database.exec(SCHEMA);
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
        // A failed COMMIT may already have ended the transaction. ROLLBACK would then fail and hide the first error.
        if (database.isTransaction) database.exec("ROLLBACK");
        throw error;
      }
    },
  };
  if (state?.["seq"] === 0) tables.inTransaction(() => setIdsApart(tables));
  return tables;
}

/**
 * Starts message ids at a random number: other stores keep records under these ids, and a record of another database
 * must not match a new message.
 */
function setIdsApart({ database, nextSeq }: Tables): void {
  nextSeq();
  database
    .prepare("INSERT INTO sqlite_sequence (name, seq) VALUES ('local_messages', ?)")
    .run(BigInt(randomInt(2 ** 32)) * IDS_APART);
}
