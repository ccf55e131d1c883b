import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { type BreakerOptions, createBreaker, type Pause } from "./breaker.ts";
import { GatewayError, type GatewayErrorKind } from "./errors.ts";
import type { GatewayLimits } from "./limits.ts";
import type { SafeText } from "./safe-text.ts";
import { type GatewayCall, readBody, type Send, type Transport } from "./transport.ts";
import { createWatch, describeSeconds } from "./watch.ts";

/** A call is about to wait before it is made, or made again. */
export interface RetryNotice {
  waitMs: number;
  error: GatewayError;
}

export interface CallOptions {
  /**
   * Awaited right before each call is sent, once it is connected. When it rejects, that call is not sent, and the
   * caller is given the same rejection.
   */
  beforeSend?: () => Promise<void>;
  /** Told before each wait, so that it can be shown. */
  onRetry?: (notice: RetryNotice) => void;
  /** The first request is made although the model is left alone at the moment: a person asked for it. */
  mustAsk?: boolean;
  /** Something else can be asked instead, so that little is waited for. */
  hasAlternative?: boolean;
  /** The time until an answer that comes piece by piece must have begun; the usual one is the longest. */
  silenceMs?: number;
  /** False for a model that may not stand in for what the request names; absent: any may. */
  mayAsk?: (model: string) => boolean;
  /** Told before something else is asked than the request names; undefined: that itself, once more. */
  onDetour?: (detour: Detour | undefined) => void;
}

/** The model or gateway asked instead of the requested one. */
export interface Detour {
  model: string;
  isSecondGateway: boolean;
  because: GatewayErrorKind;
}

export interface Attempts {
  /**
   * Waits until the model may be called. During a pause only a call now and then goes through, to look whether it is
   * over. Rejects at once when the pause is longer than a call may wait.
   */
  begin(signal: AbortSignal): Promise<void>;
  /** Waits before the next attempt. Rejects with `error` when there is none to make. */
  recover(error: unknown, signal: AbortSignal): Promise<void>;
  /** The model answers: its pause is over for everybody. */
  succeed(): void;
  /** The rest of the time for the whole call. */
  remainingMs(): number;
  /** The rest of the time until an answer must have begun. */
  remainingSilenceMs(): number;
}

/** `silenceMs`: the time within which an answer must have begun; absent: the time for the whole call. */
export type StartAttempts = (model: string, options: CallOptions, silenceMs?: number) => Attempts;

/** Kinds of failures that pass: the same may well be answered later. */
export const PASSING: ReadonlySet<GatewayErrorKind> = new Set([
  "unreachable",
  "rate-limited",
  "overloaded",
  "stalled",
  "interrupted",
]);

/** Most calls before an available detour is taken, and failures that lead to it at once. */
const ATTEMPTS_BESIDE = 2;
const NOT_TRIED_AGAIN: ReadonlySet<GatewayErrorKind> = new Set(["rate-limited", "stalled"]);
/** Calls that waited for the same moment are spread over this long. */
const SPREAD_MS = 250;

/** Longest silence before a call that finds out whether a pause is over goes elsewhere. */
const PROBE_SILENCE_MS = 15_000;
/** Longest between two looks at whether another call has found out that a pause is over. */
const LOOK_MS = 100;

/** Calls of one factory share what each model asked for and how it failed, and factories on one board do; nothing else. */
export function createRetry(limits: GatewayLimits, options: BreakerOptions = {}): StartAttempts {
  const breaker = createBreaker(limits, options);

  return (model, { onRetry, mustAsk = false, hasAlternative = false, ...options }, longestMs = limits.totalMs) => {
    const silenceMs = Math.min(longestMs, options.silenceMs ?? longestMs);
    const mostAttempts = hasAlternative ? Math.min(ATTEMPTS_BESIDE, limits.attempts) : limits.attempts;
    const startedMs = performance.now();
    const deadlineMs = startedMs + limits.totalMs;
    /** The pause in spite of which the latest attempt is made. */
    let probed: Pause | undefined;
    let attempt = 1;
    let budgetMs = hasAlternative ? 0 : limits.maxRetryWaitMs;

    const remainingMs = (): number => Math.max(0, deadlineMs - performance.now());
    const remainingSilenceMs = (): number => {
      const leftMs = Math.min(remainingMs(), Math.max(0, startedMs + silenceMs - performance.now()));
      return probed !== undefined && hasAlternative ? Math.min(PROBE_SILENCE_MS, leftMs) : leftMs;
    };

    async function wait(waitMs: number, error: GatewayError, signal: AbortSignal): Promise<void> {
      onRetry?.({ waitMs, error });
      await sleep(waitMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    }

    return {
      remainingMs,
      remainingSilenceMs,
      async begin(signal) {
        signal.throwIfAborted();
        probed = undefined;
        for (let pause = breaker.read(model); pause !== undefined; pause = breaker.read(model)) {
          const isTooLong = pause.waitMs > budgetMs || pause.waitMs > remainingSilenceMs();
          const isProbe =
            (mustAsk && attempt === 1) || ((isTooLong || pause.waitMs === 0) && (await breaker.claim(model)));
          if (isProbe) {
            probed = pause;
            return;
          }
          signal.throwIfAborted();
          const waitMs = Math.max(pause.waitMs, LOOK_MS);
          if (waitMs > budgetMs || waitMs > remainingSilenceMs()) throw toPauseError(model, { ...pause, waitMs });
          budgetMs -= waitMs;
          if (pause.waitMs > 0) await wait(waitMs + spread(), pause.error, signal);
          // Another call finds out and tells all processes; nobody is told of this short wait.
          else await sleep(waitMs, undefined, { signal }).catch(() => signal.throwIfAborted());
        }
      },
      async recover(error, signal) {
        signal.throwIfAborted();
        if (!(error instanceof GatewayError)) throw error;
        // A gateway that refuses is there.
        if (error.kind === "rejected" || error.kind === "unauthorized") breaker.succeeded(model, probed);
        if (!PASSING.has(error.kind)) throw error;
        breaker.failed(model, error, probed);
        const asked = error.retryAfterMs;
        if (attempt >= mostAttempts || (hasAlternative && NOT_TRIED_AGAIN.has(error.kind))) throw error;
        const waitMs = asked ?? backoff(attempt, limits);
        if ((asked !== undefined && asked > budgetMs) || waitMs >= remainingSilenceMs()) throw error;
        attempt += 1;
        if (asked !== undefined) budgetMs -= asked;
        await wait(asked === undefined ? waitMs : asked + spread(), error, signal);
      },
      succeed: () => breaker.succeeded(model, probed),
    };
  };
}

/** Runs `work` until it succeeds or there is no further attempt to make. */
async function runAttempts<T>(attempts: Attempts, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    await attempts.begin(signal);
    try {
      const result = await work();
      attempts.succeed();
      return result;
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

function toPauseError(model: string, { waitMs, error, isAsked }: Pause & { waitMs: number }): GatewayError {
  const subject = model === "" ? "" : ` for model ${model}`;
  const why = isAsked ? "asked to wait" : "failed again and again, and is left alone for";
  return new GatewayError(
    error.kind,
    `The gateway ${why} another ${describeSeconds(waitMs)}${subject}, so the call was not made.`,
    { cause: error, retryAfterMs: waitMs, ...(error.status === undefined ? {} : { status: error.status }) },
  );
}

/** The collaborators that all calls of one gateway share. */
export interface CallDeps {
  transport: Transport;
  retry: StartAttempts;
  limits: GatewayLimits;
  safe: SafeText;
  log: Logger;
}

/** A call whose answer is one JSON document. */
export interface Question<T> {
  call: GatewayCall;
  maxBytes: number;
  send: Send;
  /** Throws a GatewayError when the document is not what was asked for. */
  read: (json: string) => T | Promise<T>;
}

/** Asks until there is an answer or no further attempt to make. */
export function ask<T>(
  { retry }: CallDeps,
  { call, maxBytes, send, read }: Question<T>,
  signal: AbortSignal,
  options: CallOptions,
): Promise<T> {
  const attempts = retry(call.model ?? "", options);

  async function attempt(): Promise<T> {
    const watch = createWatch(signal, attempts.remainingMs());
    try {
      return await read(
        await readBody(await send({ ...call, beforeSend: options.beforeSend }, watch), maxBytes, watch),
      );
    } finally {
      watch.end();
    }
  }
  return runAttempts(attempts, attempt, signal);
}
