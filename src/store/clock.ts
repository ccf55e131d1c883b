import type { DatabaseSync } from "node:sqlite";

/** Longest jump ahead of the system's clock that is believed, as after a time in which the process did not run. */
const BELIEVED_MS = 7 * 86_400_000;
const KEPT_EVERY_MS = 60_000;

/** The sources of a clock's time, in milliseconds; tests bring their own. */
export interface TimeSources {
  /** The system's clock, which may be wrong, and may be set right. */
  wall(): number;
  /** Runs evenly from some moment on. */
  steady(): number;
}

const SYSTEM: TimeSources = { wall: Date.now, steady: () => performance.now() };

/**
 * Milliseconds by which stored data ages, like Unix time. Never goes back, not even over a restart, and leaves out
 * jumps ahead of more than a week, so that a wrong system clock expires nothing early.
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

  /** Skipping it once costs a minute after a crash; a disk that takes no writes shows elsewhere. */
  function keep(): void {
    keptAt = at;
    try {
      update.run(at, wallMs);
    } catch {
      // The next minute tries again.
    }
  }

  return now;
}
