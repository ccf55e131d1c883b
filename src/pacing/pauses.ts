import { BoundedMap } from "../concurrency/bounded-map.ts";

/** A pause counts as over this long before its real end, because timers can fire early. */
const EARLY_MS = 2;
const MAX_PAUSES = 1_000;

/**
 * Pauses that a platform requested, by a key that names the affected calls. All callers share them: a platform counts
 * every call during a pause, even from a caller that was not refused itself.
 */
export interface Pauses {
  /** Returns the remaining wait in milliseconds; 0 if calls are allowed. */
  left(key: string): number;
  note(key: string, waitMs: number): void;
}

export function createPauses(now: () => number): Pauses {
  const ends = new BoundedMap<string, number>(MAX_PAUSES);

  return {
    left(key) {
      const leftMs = (ends.get(key) ?? 0) - now();
      if (leftMs > EARLY_MS) return leftMs;
      ends.delete(key);
      return 0;
    },
    note: (key, waitMs) => void ends.set(key, Math.max(ends.get(key) ?? 0, now() + waitMs)),
  };
}
