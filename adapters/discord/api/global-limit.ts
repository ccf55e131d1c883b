import { ApiError } from "./error.ts";

/** Discord allows a bot fifty calls a second over all channels; on their way some catch up with those before them. */
const MAX_CALLS = 45;
const WINDOW_MS = 1_100;

/** Keeps the calls of any second few enough. */
export interface GlobalLimit {
  /** Counts a call. Throws an `ApiError` instead where there were too many. */
  take(): void;
}

/** The library's own counter begins a new second with the first call after the last one, and so lets twice as many through. */
export function createGlobalLimit(now: () => number = () => performance.now()): GlobalLimit {
  let made: number[] = [];
  return {
    take() {
      made = made.filter((at) => at > now() - WINDOW_MS);
      const [oldest] = made;
      if (oldest !== undefined && made.length >= MAX_CALLS) {
        const message = "The bot makes more calls per second than Discord allows it over all channels.";
        throw new ApiError(message, { status: 429, code: 0, retryAfterMs: Math.ceil(oldest + WINDOW_MS - now()) });
      }
      made.push(now());
    },
  };
}
