import { GatewayError } from "./errors.ts";

/**
 * Ends one call: when the caller's signal aborts, when the call as a whole takes too long, or when nothing
 * comes while something is expected. `signal` then aborts with the reason that shall be thrown.
 */
export interface Watch {
  readonly signal: AbortSignal;
  /** Something must come within `ms` from this moment. */
  expect(ms: number): void;
  /** Must be called when the call is over. Aborts nothing. */
  end(): void;
}

export function createWatch(signal: AbortSignal, remainingMs: number): Watch {
  const ended = new AbortController();
  let silenceMs = 0;
  let expectedMs = 0;
  /** Asks now and then. It is not wound up for every wait, of which a stream makes thousands. */
  let look: NodeJS.Timeout | undefined;
  let lookMs = Number.POSITIVE_INFINITY;

  function leave(): void {
    ended.abort(signal.reason);
  }

  function lookAt(atMs: number, nowMs: number): void {
    clearTimeout(look);
    lookMs = atMs;
    look = setTimeout(expire, Math.ceil(atMs - nowMs));
  }

  function expire(): void {
    const nowMs = performance.now();
    const untilMs = expectedMs + silenceMs;
    if (nowMs < untilMs) return lookAt(untilMs, nowMs);
    ended.abort(new GatewayError("stalled", `The gateway sent nothing for ${describeSeconds(silenceMs)}.`));
  }

  const total = setTimeout(() => {
    ended.abort(new GatewayError("interrupted", "The gateway took too long for the whole answer."));
  }, remainingMs);
  if (signal.aborted) leave();
  else signal.addEventListener("abort", leave, { once: true });

  return {
    signal: ended.signal,
    expect(ms) {
      expectedMs = performance.now();
      silenceMs = ms;
      if (expectedMs + ms < lookMs) lookAt(expectedMs + ms, expectedMs);
    },
    end() {
      clearTimeout(look);
      clearTimeout(total);
      signal.removeEventListener("abort", leave);
    },
  };
}

/** A wait as people say it: "12 s". Rounded up, so that nobody comes back too early. */
export function describeSeconds(ms: number): string {
  return ms < 1_000 ? `${Math.ceil(ms)} ms` : `${Math.ceil(ms / 1_000)} s`;
}
