import { BoundedMap } from "../concurrency/bounded-map.ts";
import type { SharedWaits } from "../port/pace.ts";

/** A pause counts as over this much before its end: timers may fire early. */
const EARLY_MS = 2;
const MAX_PAUSES = 1_000;

/**
 * The pauses that a platform has asked for, each for the calls that its key names. They are kept here because callers,
 * and other processes, do not know of each other's refusals, and a platform counts each call during a pause.
 */
export interface Pauses {
  /** The rest of the wait, in milliseconds; 0 where the calls may be made. */
  left(key: string): number;
  note(key: string, waitMs: number): void;
}

/** `waits` shares them with other processes. */
export function createPauses(now: () => number, waits?: SharedWaits): Pauses {
  const ends = new BoundedMap<string, number>(MAX_PAUSES);
  const keep = (key: string, waitMs: number) => void ends.set(key, Math.max(ends.get(key) ?? 0, now() + waitMs));
  waits?.listen(keep);

  return {
    left(key) {
      const leftMs = (ends.get(key) ?? 0) - now();
      if (leftMs > EARLY_MS) return leftMs;
      ends.delete(key);
      return 0;
    },
    note(key, waitMs) {
      keep(key, waitMs);
      waits?.tell(key, waitMs);
    },
  };
}
