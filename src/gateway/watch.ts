import { GatewayError } from "./errors.ts";

/**
 * Ends one call: when the caller's signal aborts, when the call as a whole takes too long, or when nothing
 * comes while something is expected. `signal` then aborts with the reason that shall be thrown.
 */
export interface Watch {
  readonly signal: AbortSignal;
  /** Something must come within `ms` from this moment. */
  expect(ms: number): void;
  /** Nothing is expected: a consumer that takes its time is not the gateway's silence. */
  rest(): void;
  /** Must be called when the call is over. Aborts nothing. */
  end(): void;
}

export function createWatch(signal: AbortSignal, remainingMs: number): Watch {
  const ended = new AbortController();
  let silence: NodeJS.Timeout | undefined;
  let silenceMs = 0;
  let expecting = false;

  function leave(): void {
    ended.abort(signal.reason);
  }

  function expire(): void {
    if (!expecting) return;
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
      expecting = true;
      // One timer is wound up again and again: a stream makes thousands of waits.
      if (silence !== undefined && ms === silenceMs) {
        silence.refresh();
        return;
      }
      clearTimeout(silence);
      silenceMs = ms;
      silence = setTimeout(expire, ms);
    },
    rest() {
      expecting = false;
    },
    end() {
      expecting = false;
      clearTimeout(silence);
      clearTimeout(total);
      signal.removeEventListener("abort", leave);
    },
  };
}

/** A wait as people say it: "12 s". Rounded up, so that nobody comes back too early. */
export function describeSeconds(ms: number): string {
  return ms < 1_000 ? `${Math.ceil(ms)} ms` : `${Math.ceil(ms / 1_000)} s`;
}
