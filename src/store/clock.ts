import type { DatabaseSync } from "node:sqlite";

/** The longest forward jump of the system's clock that is believed, for example after the machine slept. */
const BELIEVED_MS = 7 * 86_400_000;
const KEPT_EVERY_MS = 60_000;

export interface TimeSources {
  /** The system's clock, in milliseconds. It can be wrong and can be corrected. */
  wall(): number;
  /** A clock that counts milliseconds evenly, from any starting point. */
  steady(): number;
}

const SYSTEM: TimeSources = { wall: Date.now, steady: () => performance.now() };

/**
 * Returns the milliseconds that decide when stored data expires, similar to Unix time. Never goes back, not even after
 * a restart. Ignores forward jumps of more than a week, so that a wrong system clock does not expire data early.
 */
export type Clock = () => number;

export function createClock(database: DatabaseSync, { wall, steady }: TimeSources = SYSTEM): Clock {
  database.exec(`
    CREATE TABLE IF NOT EXISTS store_clock (
      only INTEGER PRIMARY KEY CHECK (only = 1),
      at INTEGER NOT NULL,
      wall INTEGER NOT NULL
    ) STRICT
  `);
  const insert = database.prepare("INSERT OR IGNORE INTO store_clock (only, at, wall) VALUES (1, ?, ?)");
  const update = database.prepare("UPDATE store_clock SET at = MAX(at, ?), wall = ?");
  const known = database.prepare("SELECT at, wall FROM store_clock").get();
  let wallMs = Number(known?.["wall"] ?? wall());
  let at = Number(known?.["at"] ?? wallMs);
  let steadyMs = steady();
  let keptAt = at;
  if (known === undefined) insert.run(at, wallMs);
  else now();

  function now(): number {
    const elapsedMs = Math.max(0, Math.floor(steady() - steadyMs));
    const aheadMs = wall() - wallMs - elapsedMs;
    steadyMs += elapsedMs;
    wallMs += elapsedMs + aheadMs;
    at += elapsedMs + (aheadMs > 0 && aheadMs <= BELIEVED_MS ? aheadMs : 0);
    if (at - keptAt >= KEPT_EVERY_MS || Math.abs(aheadMs) >= KEPT_EVERY_MS) keep();
    return at;
  }

  /** Stores the time. If this fails, a crash loses at most a minute. Other code reports a full or broken disk. */
  function keep(): void {
    keptAt = at;
    try {
      update.run(at, wallMs);
    } catch {
      // The clock tries the write again after a minute.
    }
  }

  return now;
}
