import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import type { Api, ApiAnswer, ApiCall } from "./client.ts";
import { ApiError } from "./error.ts";

const MAX_KEYS = 1_000;

/** Makes optional calls, and skips those that would exceed Discord's rate limit. Each key has its own limit. */
export interface OptionalCalls {
  /** Resolves to undefined if the call was skipped or hit the rate limit. Otherwise behaves like `Api.call`. */
  call(key: string, call: ApiCall, signal: AbortSignal): Promise<ApiAnswer | undefined>;
}

interface CallCounter {
  left: number;
  underWay: number;
  /** A time of `performance.now`. */
  closedUntil: number;
}

export interface OptionalCallsOptions {
  /** How many calls per key can run at once until Discord's headers show the limit. */
  firstCalls: number;
  /** Number of the limit's calls that stay reserved for calls that are not optional; by default none. */
  reserve?: number;
}

export function createOptionalCalls(
  api: Pick<Api, "call">,
  { firstCalls, reserve = 0 }: OptionalCallsOptions,
): OptionalCalls {
  const counters = new BoundedMap<string, CallCounter>(MAX_KEYS);

  function counterOf(key: string): CallCounter {
    const counter = counters.get(key) ?? { left: firstCalls, underWay: 0, closedUntil: 0 };
    counters.set(key, counter);
    if (counter.closedUntil !== 0 && counter.closedUntil <= performance.now()) {
      Object.assign(counter, { left: firstCalls, closedUntil: 0 });
    }
    return counter;
  }

  return {
    async call(key, call, signal) {
      const counter = counterOf(key);
      if (counter.left <= counter.underWay) return undefined;
      counter.underWay++;
      try {
        const answer = await api.call(call, signal);
        if (answer.budget !== undefined) {
          counter.left = answer.budget.remaining - reserve;
          counter.closedUntil = performance.now() + answer.budget.resetAfterMs;
        }
        return answer;
      } catch (error) {
        const waitMs = error instanceof ApiError ? error.retryAfterMs : undefined;
        if (waitMs === undefined) throw error;
        Object.assign(counter, { left: 0, closedUntil: performance.now() + waitMs });
        return undefined;
      } finally {
        counter.underWay--;
      }
    },
  };
}
