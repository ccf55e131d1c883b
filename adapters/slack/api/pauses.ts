/** What the timers of those who waited may be early by, in milliseconds. */
const EARLY_MS = 2;
const MAX_REMEMBERED = 1_000;

/**
 * The waits that Slack has asked for. They belong to a method in a workspace: who calls it does not know who was
 * refused before, and calls in between make the wait longer.
 */
export interface Pauses {
  /** What is left of the wait, in milliseconds; 0 where the method may be called. */
  left(teamId: string, method: string): number;
  note(teamId: string, method: string, waitMs: number): void;
}

export function createPauses(now: () => number): Pauses {
  const ends = new Map<string, number>();
  const toKey = (teamId: string, method: string) => `${teamId} ${method}`;

  /** Those that are over, and where all of them go on, the one that was noted first. */
  function forgetSome(): void {
    for (const [key, end] of ends) if (end <= now()) ends.delete(key);
    const [first] = ends.keys();
    if (first !== undefined && ends.size >= MAX_REMEMBERED) ends.delete(first);
  }

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
      if (ends.size >= MAX_REMEMBERED) forgetSome();
      ends.set(key, Math.max(ends.get(key) ?? 0, now() + waitMs));
    },
  };
}
