import { setTimeout as sleep } from "node:timers/promises";
import { GatewayError, type GatewayErrorKind } from "./errors.ts";
import type { GatewayLimits } from "./limits.ts";
import { describeSeconds } from "./watch.ts";

/** A call is about to wait before it is made, or made again. */
export interface RetryNotice {
  /** The attempt that follows the wait, counted from 1. */
  attempt: number;
  waitMs: number;
  error: GatewayError;
}

/** The attempts of one call. */
export interface Attempts {
  /**
   * Waits until the model may be called: after it asked for a pause, no call is made before its end.
   * Rejects at once, with the kind of error that asked for it, when that is longer than a call may wait.
   */
  begin(signal: AbortSignal): Promise<void>;
  /** Waits before the next attempt. Rejects with `error` when there is none to make. */
  recover(error: unknown, signal: AbortSignal): Promise<void>;
  /** What is left of the time for the whole call. */
  remainingMs(): number;
}

export type StartAttempts = (model: string, notify: ((notice: RetryNotice) => void) | undefined) => Attempts;

const PASSING: ReadonlySet<GatewayErrorKind> = new Set([
  "unreachable",
  "rate-limited",
  "overloaded",
  "stalled",
  "interrupted",
]);

/** An absurd wish is asked about again after this long, so that one broken answer cannot silence a model for ever. */
const MAX_PAUSE_MS = 3_600_000;
/** Calls that waited for the same moment are spread over this long. */
const SPREAD_MS = 250;

/** Calls of one factory share what each model asked for; nothing else. */
export function createRetry(limits: GatewayLimits): StartAttempts {
  const pauses = new Map<string, { untilMs: number; error: GatewayError }>();

  function readPause(model: string): { waitMs: number; error: GatewayError } | undefined {
    const pause = pauses.get(model);
    if (pause === undefined) return undefined;
    const waitMs = Math.ceil(pause.untilMs - performance.now());
    if (waitMs > 0) return { waitMs, error: pause.error };
    pauses.delete(model);
    return undefined;
  }

  return (model, notify) => {
    const deadlineMs = performance.now() + limits.totalMs;
    let attempt = 1;
    let budgetMs = limits.maxRetryWaitMs;

    const remainingMs = (): number => Math.max(0, deadlineMs - performance.now());

    async function wait(waitMs: number, error: GatewayError, signal: AbortSignal): Promise<void> {
      notify?.({ attempt, waitMs, error });
      await sleep(waitMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    }

    return {
      remainingMs,
      async begin(signal) {
        signal.throwIfAborted();
        for (let pause = readPause(model); pause !== undefined; pause = readPause(model)) {
          if (pause.waitMs > budgetMs || pause.waitMs > remainingMs()) throw toPauseError(model, pause);
          budgetMs -= pause.waitMs;
          await wait(pause.waitMs + spread(), pause.error, signal);
        }
      },
      async recover(error, signal) {
        signal.throwIfAborted();
        if (!(error instanceof GatewayError) || !PASSING.has(error.kind)) throw error;
        const asked = error.retryAfterMs;
        if (asked !== undefined && asked > 0) {
          pauses.set(model, { untilMs: performance.now() + Math.min(asked, MAX_PAUSE_MS), error });
        }
        if (attempt >= limits.attempts) throw error;
        const waitMs = asked ?? backoff(attempt, limits);
        if ((asked !== undefined && asked > budgetMs) || waitMs >= remainingMs()) throw error;
        attempt += 1;
        if (asked !== undefined) budgetMs -= asked;
        await wait(asked === undefined ? waitMs : asked + spread(), error, signal);
      },
    };
  };
}

/** Runs `work` until it succeeds or there is no further attempt to make. */
export async function runAttempts<T>(attempts: Attempts, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    await attempts.begin(signal);
    try {
      return await work();
    } catch (error) {
      await attempts.recover(error, signal);
    }
  }
}

/** Anywhere in the range, which doubles: callers that failed together do not come back together. */
function backoff(attempt: number, { backoffMinMs, backoffMaxMs }: GatewayLimits): number {
  const ceilingMs = Math.min(backoffMaxMs, backoffMinMs * 2 ** (attempt + 1));
  return backoffMinMs + Math.random() * Math.max(0, ceilingMs - backoffMinMs);
}

function spread(): number {
  return Math.random() * SPREAD_MS;
}

function toPauseError(model: string, { waitMs, error }: { waitMs: number; error: GatewayError }): GatewayError {
  const subject = model === "" ? "" : ` for model ${model}`;
  return new GatewayError(
    error.kind,
    `The gateway asked to wait another ${describeSeconds(waitMs)}${subject}, so the call was not made.`,
    { cause: error, retryAfterMs: waitMs, ...(error.status === undefined ? {} : { status: error.status }) },
  );
}
