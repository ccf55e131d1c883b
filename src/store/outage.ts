import { LoggableError } from "../port/errors.ts";

/** The store is unavailable or refuses writes. The message says what is wrong, where, and how to fix it. */
export class StoreError extends LoggableError {
  override readonly name = "StoreError";
}

/** Busy, locked, read-only, I/O error, full, cannot open: https://www.sqlite.org/rescode.html. */
const SQLITE_OUTAGES = new Set([5, 6, 8, 10, 13, 14]);
/** How many nested causes of an error are checked. */
const MAX_DEPTH = 5;

/** True if the error only means that a store or a disk is unavailable, so that the same work can succeed later. */
export function isStoreOutage(error: unknown): boolean {
  let at = error;
  for (let depth = 0; depth < MAX_DEPTH && at instanceof Error; depth++) {
    if (at instanceof StoreError || SQLITE_OUTAGES.has(sqliteCodeOf(at) ?? 0)) return true;
    at = at.cause;
  }
  return false;
}

/** Returns the primary SQLite result code of an error; undefined for other errors. */
export function sqliteCodeOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return undefined;
  // The primary code is the low byte of an extended code.
  return error.errcode & 0xff;
}
