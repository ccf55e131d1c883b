import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describeError, LoggableError } from "../port/errors.ts";
import { sqliteCodeOf } from "./outage.ts";
import { createFolder, makePrivate } from "./private-files.ts";

/** The file's `user_version`. A change to a table that older code cannot read raises it. */
const SCHEMA_VERSION = 1;
/** A process that was just killed may need a moment until the system takes its locks away. */
const LOCK_WAIT_MS = 500;
/** Only other programs that look into the file, such as a backup, can make a statement wait. */
const BUSY_TIMEOUT_MS = 5_000;
/** Largest size the write-ahead log keeps on the disk once it has been copied into the file. */
const WAL_LIMIT_BYTES = 64 * 1024 * 1024;

/** SQLite's primary result codes, https://www.sqlite.org/rescode.html. */
const RESULT = { busy: 5, readonly: 8, ioError: 10, corrupt: 11, full: 13, cannotOpen: 14, notADatabase: 26 } as const;

/** The database file cannot be used. The message says what is wrong, where, and what to do. */
export class DatabaseError extends LoggableError {
  override readonly name = "DatabaseError";

  /** Another process has the file open. */
  get isInUse(): boolean {
    return sqliteCodeOf(this.cause) === RESULT.busy;
  }
}

/**
 * Opens the one SQLite file of this process, or a database in memory for `":memory:"`, and creates it with its
 * folder when it is absent. What is committed survives the end of the process and of the machine; what is deleted
 * is overwritten. Nobody else on the machine can read it, where the file system allows that. The file belongs to one
 * process at a time: a lock beside it is held until `close`, and the system takes it away when the process dies.
 * Throws a `DatabaseError` when the file cannot be used.
 */
export function openDatabase(path: string): DatabaseSync {
  if (path === ":memory:") return prepareDatabase(path);
  createFolderOf(path);
  makePrivate(path);
  const lock = acquireLock(path);
  try {
    return closeTogether(prepareDatabase(path), lock);
  } catch (error) {
    lock.close();
    throw error;
  }
}

/** Runs `work` in one transaction: all of it is stored, or, when it throws, nothing. `work` is synchronous. */
export function transact<T>(database: DatabaseSync, work: () => T): T {
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = work();
    database.exec("COMMIT");
    return result;
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

/** Empties the write-ahead log, which may hold copies of erased data; later if somebody reads just now. */
export function emptyLog(database: DatabaseSync): void {
  database.exec("PRAGMA busy_timeout = 0");
  try {
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  }
}

function createFolderOf(path: string): void {
  try {
    createFolder(dirname(path));
  } catch (cause) {
    throw new DatabaseError(
      `The folder ${dirname(path)} for the database cannot be created (${describeError(cause)}). Set DATA_DIR to a folder that may be written to.`,
      { cause },
    );
  }
}

/** An exclusive lock of SQLite's own on an empty file: it needs no clean-up, because it ends with the process. */
function acquireLock(path: string): DatabaseSync {
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(`${path}.lock`, { timeout: LOCK_WAIT_MS });
    lock.exec("BEGIN EXCLUSIVE");
    return lock;
  } catch (cause) {
    lock?.close();
    throw toDatabaseError(cause, path);
  }
}

function prepareDatabase(path: string): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: true });
    // Refused before anything is changed in the file.
    checkVersion(database, path);
    const mode = database.prepare("PRAGMA journal_mode = WAL").get()?.["journal_mode"];
    if (mode !== "wal" && mode !== "memory") {
      throw new DatabaseError(
        `The database ${path} cannot keep a write-ahead log; its file system may be a network share. Set DATA_DIR to a folder on a local disk.`,
      );
    }
    database.exec(
      `PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA journal_size_limit = ${WAL_LIMIT_BYTES}; PRAGMA user_version = ${SCHEMA_VERSION};`,
    );
    return database;
  } catch (cause) {
    if (database?.isOpen === true) database.close();
    throw cause instanceof DatabaseError ? cause : toDatabaseError(cause, path);
  }
}

function checkVersion(database: DatabaseSync, path: string): void {
  const version = Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
  if (version > SCHEMA_VERSION) {
    throw new DatabaseError(
      `The database ${path} was written by a newer version of this program (its schema is ${version}, this one knows ${SCHEMA_VERSION}). Run the newer version, or set DATA_DIR to another folder.`,
    );
  }
}

/** Lets the lock go only after the file is closed, however it is closed. */
function closeTogether(database: DatabaseSync, lock: DatabaseSync): DatabaseSync {
  const close = database.close.bind(database);
  database.close = () => {
    close();
    lock.close();
  };
  database[Symbol.dispose] = () => {
    if (database.isOpen) database.close();
  };
  return database;
}

function toDatabaseError(cause: unknown, path: string): DatabaseError {
  return new DatabaseError(explain(cause, path), { cause });
}

function explain(cause: unknown, path: string): string {
  switch (sqliteCodeOf(cause) ?? 0) {
    case RESULT.busy:
      return `The database ${path} is in use by another process. Stop that one first, or set DATA_DIR to another folder.`;
    case RESULT.corrupt:
    case RESULT.notADatabase:
      return `The file ${path} is damaged or is not a database. Put a backup in its place, or move it away to start empty.`;
    case RESULT.full:
      return `The disk is full: the database ${path} cannot be written. Free some space and start again.`;
    case RESULT.readonly:
    case RESULT.ioError:
    case RESULT.cannotOpen:
      return `The database ${path} cannot be opened for writing (${describeError(cause)}). Check the permissions of the folder, or set DATA_DIR to one that may be written to.`;
    default:
      return `The database ${path} cannot be opened (${describeError(cause)}).`;
  }
}
