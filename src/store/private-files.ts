import { chmodSync, closeSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";

const PRIVATE = 0o600;
/** Files that SQLite puts beside a database, and our lock. */
const SUFFIXES = ["", "-wal", "-shm", "-journal", ".lock", ".lock-journal"];

/**
 * Makes a database and what stands beside it unreadable for everybody else, whatever the umask, also where they were
 * there before. To be called before SQLite opens it, since SQLite gives new files beside a database the database's own
 * mode. Never throws: what cannot be written is told by SQLite, what stays readable by `findExposed`.
 */
export function makePrivate(databasePath: string): void {
  for (const path of [databasePath, `${databasePath}.lock`]) create(path);
  for (const path of existing(databasePath)) {
    try {
      // By its path: closing a file of one's own takes every lock of this process from it.
      if (modeOf(path) !== PRIVATE) chmodSync(path, PRIVATE);
    } catch {
      // Somebody else's file, or a file system without modes.
    }
  }
}

/** Finds the files of a database that others on this machine can read or write. */
export function findExposed(databasePath: string): string[] {
  // Windows has other means, and gives modes that say nothing.
  if (process.platform === "win32") return [];
  return existing(databasePath).filter((path) => (modeOf(path) & 0o077) !== 0);
}

/**
 * Creates a folder and its parents, readable by nobody else. Throws the system's error. Node's `recursive` never ends
 * where the system calls an existing folder absent, as below /proc.
 */
export function createFolder(path: string): void {
  if (isFolder(path)) return;
  const parent = dirname(path);
  if (parent !== path) createFolder(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it meanwhile.
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
    // It is there already, or SQLite will say why it cannot be.
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
