import { callsPerMinute, type Limits } from "./limits.ts";

export interface RateLimiter {
  /**
   * Counts a call. Returns undefined if the call is permitted, or the whole seconds until a retry. A refused call does
   * not count.
   */
  take(method: string, workspaceId: string, channelId: string | undefined): number | undefined;
}

interface Counter {
  /** Milliseconds until the next call is permitted; 0 if it is permitted now. */
  waitMs(nowMs: number): number;
  spend(nowMs: number): void;
}

const MINUTE_MS = 60_000;

export function createRateLimiter(limits: Limits, now: () => number): RateLimiter {
  const counters = new Map<string, Counter>();

  function counterOf(key: string, create: () => Counter): Counter {
    const known = counters.get(key);
    if (known !== undefined) return known;
    const counter = create();
    counters.set(key, counter);
    return counter;
  }

  function countersOf(method: string, workspaceId: string, channelId: string | undefined): Counter[] {
    const found: Counter[] = [];
    const calls = callsPerMinute(limits, method);
    if (calls !== undefined) {
      const create = () =>
        limits.kind === "sliding" ? slidingCounter(calls, MINUTE_MS) : bucketCounter(calls, MINUTE_MS / calls);
      found.push(counterOf(`${workspaceId} ${method}`, create));
    }
    if (method === "chat.postMessage" && channelId !== undefined) {
      found.push(counterOf(`${workspaceId} ${method} ${channelId}`, () => bucketCounter(limits.postBurst, 1_000)));
    }
    return found;
  }

  return {
    take(method, workspaceId, channelId) {
      const nowMs = now();
      const asked = countersOf(method, workspaceId, channelId);
      const waitMs = Math.max(0, ...asked.map((counter) => counter.waitMs(nowMs)));
      if (waitMs > 0) return Math.max(1, Math.ceil(waitMs / 1000));
      for (const counter of asked) counter.spend(nowMs);
      return undefined;
    },
  };
}

/** Allows at most `calls` calls in any `windowMs`. */
function slidingCounter(calls: number, windowMs: number): Counter {
  let spent: number[] = [];
  return {
    waitMs(nowMs) {
      spent = spent.filter((atMs) => atMs > nowMs - windowMs);
      const oldest = spent[0];
      return spent.length < calls || oldest === undefined ? 0 : oldest + windowMs - nowMs;
    },
    spend: (nowMs) => void spent.push(nowMs),
  };
}

/** A full bucket of `depth` calls that gains one call per `refillMs`. */
function bucketCounter(depth: number, refillMs: number): Counter {
  let level = depth;
  let lastMs = 0;
  const fill = (nowMs: number) => {
    level = Math.min(depth, level + (nowMs - lastMs) / refillMs);
    lastMs = nowMs;
  };
  return {
    waitMs(nowMs) {
      fill(nowMs);
      // Rounding errors can leave the sum slightly below a whole call.
      return level >= 1 - 1e-9 ? 0 : (1 - level) * refillMs;
    },
    spend(nowMs) {
      fill(nowMs);
      level -= 1;
    },
  };
}
