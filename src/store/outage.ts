import { LoggableError } from "../port/errors.ts";

/** The store is away, or takes nothing. The message says what is wrong, where, and what to do. */
export class StoreError extends LoggableError {
  override readonly name = "StoreError";
}

/** Busy, locked, read-only, I/O error, full, cannot open: https://www.sqlite.org/rescode.html. */
const SQLITE_OUTAGES = new Set([5, 6, 8, 10, 13, 14]);
/** Causes that are looked at behind an error. */
const MAX_DEPTH = 5;

/** True for an error that says only that a store or the disk is away: the same work may succeed later. */
export function isStoreOutage(error: unknown): boolean {
  let at = error;
  for (let depth = 0; depth < MAX_DEPTH && at instanceof Error; depth++) {
    if (at instanceof StoreError || SQLITE_OUTAGES.has(sqliteCodeOf(at) ?? 0)) return true;
    at = at.cause;
  }
  return false;
}

/** SQLite's primary result code in an error; undefined where the error is not SQLite's. */
export function sqliteCodeOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return undefined;
  // The low byte of an extended code is the primary one.
  return error.errcode & 0xff;
}
