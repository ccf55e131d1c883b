import { chmodSync, closeSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";

const PRIVATE = 0o600;
/** The endings of file names: of a database, of the files that SQLite creates next to it, and of our lock files. */
const SUFFIXES = ["", "-wal", "-shm", "-journal", ".lock", ".lock-journal"];

/**
 * Makes a database and the files next to it unreadable for other users, whatever the umask is. Must run before SQLite
 * opens the database, because SQLite gives new files the database's mode. Never throws: SQLite reports files that it
 * cannot write, and `findExposed` reports files that stay readable.
 */
export function makePrivate(databasePath: string): void {
  for (const path of [databasePath, `${databasePath}.lock`]) create(path);
  for (const path of existing(databasePath)) {
    try {
      // Change the mode by path: closing a file descriptor would release all of the process's locks on the file.
      if (modeOf(path) !== PRIVATE) chmodSync(path, PRIVATE);
    } catch {
      // The file belongs to another user, or the file system has no modes.
    }
  }
}

/** Finds files of a database that other users of this machine can read or write. */
export function findExposed(databasePath: string): string[] {
  // Windows has other permissions, and file modes mean nothing there.
  if (process.platform === "win32") return [];
  return existing(databasePath).filter((path) => (modeOf(path) & 0o077) !== 0);
}

/**
 * Creates a folder and its parents, readable only by this user. Throws the system's error. Node's `recursive` option
 * would never return if the system calls an existing folder missing, as below /proc.
 */
export function createFolder(path: string): void {
  if (isFolder(path)) return;
  const parent = dirname(path);
  if (parent !== path) createFolder(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have created the folder in the meantime.
    if (!isFolder(path)) throw error;
  }
}

function existing(databasePath: string): string[] {
  return SUFFIXES.map((suffix) => databasePath + suffix).filter((path) => tryStat(path)?.isFile() === true);
}

function create(path: string): void {
  try {
    closeSync(openSync(path, "wx", PRIVATE));
  } catch {
    // The folder exists already, or SQLite will report why it cannot use the folder.
  }
}

function modeOf(path: string): number {
  return (tryStat(path)?.mode ?? 0) & 0o777;
}

function tryStat(path: string) {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
