const MINUTE_MS = 60_000;

export interface Throttle {
  /** Counts a call. Returns false, without counting it, if it exceeds the limit or if the key is paused. */
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
