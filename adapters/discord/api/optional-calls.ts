import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import type { Api, ApiAnswer, ApiCall } from "./client.ts";
import { ApiError } from "./error.ts";

const MAX_KEYS = 1_000;

/** Makes optional calls, and leaves out those that Discord would refuse for the rate: each key has a limit of its own. */
export interface OptionalCalls {
  /** Resolves to undefined where no call is made, or it was refused for the rate; otherwise as `Api.call`. */
  call(key: string, call: ApiCall, signal: AbortSignal): Promise<ApiAnswer | undefined>;
}

interface CallCounter {
  left: number;
  underWay: number;
  /** As `performance.now` counts. */
  closedUntil: number;
}

export interface OptionalCallsOptions {
  /** Concurrent calls per key until Discord's headers tell the limit. */
  firstCalls: number;
  /** Calls of the limit left to others, which are not optional; absent: none. */
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
