import { dirname } from "node:path";
import { DatabaseSync, type DatabaseSyncOptions } from "node:sqlite";
import { describeError, LoggableError } from "../port/errors.ts";
import { sqliteCodeOf } from "./outage.ts";
import { createFolder, makePrivate } from "./private-files.ts";
import { describeRefusal, STORED_VERSION } from "./version.ts";

/** How long to wait for a killed process's locks, which the system releases after a moment. */
const LOCK_WAIT_MS = 500;
/** How long a statement waits for another program that reads the file, such as a backup. */
const BUSY_TIMEOUT_MS = 5_000;
/** The write-ahead log shrinks to this size after its content was copied into the file. */
const WAL_LIMIT_BYTES = 64 * 1024 * 1024;

/** SQLite's primary result codes, https://www.sqlite.org/rescode.html. */
const RESULT = { busy: 5, readonly: 8, ioError: 10, corrupt: 11, full: 13, cannotOpen: 14, notADatabase: 26 } as const;

/** The database file cannot be used. The message says what is wrong, where, and how to fix it. */
export class DatabaseError extends LoggableError {
  override readonly name = "DatabaseError";

  /** True if another process has opened the file. */
  get isInUse(): boolean {
    return sqliteCodeOf(this.cause) === RESULT.busy;
  }
}

/**
 * Opens the SQLite file of this process, or a database in memory for `":memory:"`. Creates the file and its folder if
 * they are missing. Committed data survives a crash of the process or the machine, and deleted data is overwritten.
 * Other users of the machine cannot read the file, if the file system supports that. Only one process can open the file
 * at a time: `openDatabase` locks a second file until `close`, and the system releases the lock if the process dies.
 * Throws a `DatabaseError` if the file cannot be used.
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

/** Opens a database file only for reading, even while a process uses it. Throws a `DatabaseError` if it is unusable. */
export function openForReading(path: string): DatabaseSync {
  return openChecked(path, { readOnly: true });
}

/** Runs `work`, which must be synchronous, in one transaction. If `work` throws, nothing is stored. */
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

/** Empties the write-ahead log, which can contain erased data. If a reader prevents that, a later call can succeed. */
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
      `The folder ${dirname(path)} for the database cannot be created (${describeError(cause)}). Set DATA_DIR to a writable folder.`,
      { cause },
    );
  }
}

/** Locks an empty file through SQLite. The lock ends with the process, so it needs no clean-up. */
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
  return openChecked(path, { enableForeignKeyConstraints: true }, (database) => {
    const mode = database.prepare("PRAGMA journal_mode = WAL").get()?.["journal_mode"];
    if (mode !== "wal" && mode !== "memory") {
      throw new DatabaseError(
        `The database ${path} cannot keep a write-ahead log; its file system may be a network share. Set DATA_DIR to a folder on a local disk.`,
      );
    }
    database.exec(
      `PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA journal_size_limit = ${WAL_LIMIT_BYTES}; PRAGMA user_version = ${STORED_VERSION};`,
    );
  });
}

/** Opens a file and refuses data that this code cannot read. Only then does `prepare` change the file. */
function openChecked(
  path: string,
  options: DatabaseSyncOptions,
  prepare?: (database: DatabaseSync) => void,
): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, ...options });
    checkVersion(database, path);
    prepare?.(database);
    return database;
  } catch (cause) {
    if (database?.isOpen === true) database.close();
    throw cause instanceof DatabaseError ? cause : toDatabaseError(cause, path);
  }
}

function checkVersion(database: DatabaseSync, path: string): void {
  const version = Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
  const isEmpty = version === 0 && database.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
  const refusal = describeRefusal(version, `The database ${path}`, "move the file away to start with an empty one");
  if (!isEmpty && refusal !== undefined) throw new DatabaseError(refusal);
}

/** Makes the caller's `close` close the database first and then release the lock. */
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
      return `The file ${path} is damaged or is not a database. Replace it with a backup, or move it away to start empty.`;
    case RESULT.full:
      return `The disk is full: the database ${path} cannot be written. Free some space and start again.`;
    case RESULT.readonly:
    case RESULT.ioError:
    case RESULT.cannotOpen:
      return `The database ${path} cannot be opened for writing (${describeError(cause)}). Check the permissions of the folder, or set DATA_DIR to a writable folder.`;
    default:
      return `The database ${path} cannot be opened (${describeError(cause)}).`;
  }
}
