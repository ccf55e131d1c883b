import { GatewayError } from "./errors.ts";

/** Ends a call on the caller's signal, its deadline or a silence. `signal` aborts with the reason to throw. */
export interface Watch {
  readonly signal: AbortSignal;
  /** Something must come within `ms`, again and again: each sign raises `countSigns()`. Noticed up to a tenth late. */
  expect(ms: number, countSigns?: () => number): void;
  /** Must be called when the call is over. Aborts nothing. */
  end(): void;
}

/** Looks within one silence. Looking rarely costs nothing per chunk, and forgives a process that was held up. */
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

/** A wait as people say it: "12 s". Rounded up, so that nobody comes back too early. */
export function describeSeconds(ms: number): string {
  return ms < 1_000 ? `${Math.ceil(ms)} ms` : `${Math.ceil(ms / 1_000)} s`;
}
