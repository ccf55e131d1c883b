import { GatewayError } from "./errors.ts";

/** Ends a call when the caller's signal aborts, at its deadline or after a silence. `signal` aborts with the error. */
export interface Watch {
  readonly signal: AbortSignal;
  /**
   * From this call on, `countSigns()` must rise at least every `ms`. A silence is noticed up to a tenth of `ms` late.
   */
  expect(ms: number, countSigns?: () => number): void;
  end(): void;
}

/** How many times the watch checks during the longest allowed silence. Rare checks are cheap and tolerate delays. */
const LOOKS_PER_SILENCE = 10;

export function createWatch(signal: AbortSignal, remainingMs: number): Watch {
  const ended = new AbortController();
  let looking: NodeJS.Timeout | undefined;

  function leave(): void {
    ended.abort(signal.reason);
  }

  const total = setTimeout(() => {
    ended.abort(new GatewayError("interrupted", "The gateway took too long for the whole answer."));
  }, remainingMs);
  if (signal.aborted) leave();
  else signal.addEventListener("abort", leave, { once: true });

  return {
    signal: ended.signal,
    expect(ms, countSigns = countNone) {
      clearInterval(looking);
      let counted = countSigns();
      let quietLooks = 0;
      looking = setInterval(
        () => {
          const count = countSigns();
          quietLooks = count === counted ? quietLooks + 1 : 0;
          counted = count;
          if (quietLooks < LOOKS_PER_SILENCE) return;
          clearInterval(looking);
          ended.abort(new GatewayError("stalled", `The gateway sent nothing for ${describeSeconds(ms)}.`));
        },
        Math.ceil(ms / LOOKS_PER_SILENCE),
      );
    },
    end() {
      clearInterval(looking);
      clearTimeout(total);
      signal.removeEventListener("abort", leave);
    },
  };
}

function countNone(): number {
  return 0;
}

/** Describes a wait, for example "12 s". Rounds up, so that no one retries too early. */
export function describeSeconds(ms: number): string {
  return ms < 1_000 ? `${Math.ceil(ms)} ms` : `${Math.ceil(ms / 1_000)} s`;
}
