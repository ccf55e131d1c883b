import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import type { SharedWaits } from "../../../src/port/pace.ts";

const MINUTE_MS = 60_000;
/** A pause counts as over this much before its end: timers may fire early. */
const EARLY_MS = 2;
const MAX_PAUSES = 1_000;

/** Limits optional calls to a number per minute, for each key by itself. */
export interface Throttle {
  /** Counts a call. False, and not counted, where it is one too many or the key is paused. */
  take(key: string, maxAMinute: number): boolean;
  pause(key: string, waitMs: number): void;
}

export function createThrottle(now: () => number): Throttle {
  const calledAt = new Map<string, number[]>();
  const pausedUntil = new Map<string, number>();

  return {
    take(key, maxAMinute) {
      const recent = (calledAt.get(key) ?? []).filter((atMs) => atMs > now() - MINUTE_MS);
      const isAllowed = recent.length < maxAMinute && (pausedUntil.get(key) ?? 0) <= now();
      calledAt.set(key, isAllowed ? [...recent, now()] : recent);
      return isAllowed;
    },
    pause: (key, waitMs) => void pausedUntil.set(key, now() + waitMs),
  };
}

/**
 * The pauses that Slack has asked for, by workspace and method. They are kept here because callers do not know of each
 * other's refusals, and each call during a pause makes it longer.
 */
export interface Pauses {
  /** The rest of the wait, in milliseconds; 0 where the method may be called. */
  left(teamId: string, method: string): number;
  note(teamId: string, method: string, waitMs: number): void;
}

export function createPauses(now: () => number, waits?: SharedWaits): Pauses {
  const ends = new BoundedMap<string, number>(MAX_PAUSES);
  const toKey = (teamId: string, method: string) => `${teamId} ${method}`;
  const keep = (key: string, waitMs: number) => void ends.set(key, Math.max(ends.get(key) ?? 0, now() + waitMs));
  waits?.listen(keep);

  return {
    left(teamId, method) {
      const key = toKey(teamId, method);
      const leftMs = (ends.get(key) ?? 0) - now();
      if (leftMs > EARLY_MS) return leftMs;
      ends.delete(key);
      return 0;
    },
    note(teamId, method, waitMs) {
      const key = toKey(teamId, method);
      keep(key, waitMs);
      waits?.tell(key, waitMs);
    },
  };
}
