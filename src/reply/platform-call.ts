import { NEVER, runWithin } from "../concurrency/deadlines.ts";
import { SinkError } from "../port/errors.ts";
import type { CallKind, CallResult } from "../port/pace.ts";
import { canBeTakenOver, checkRight, type Right } from "../port/right.ts";
import type { Draft, Receipt } from "../port/sink.ts";

/** Timeout for a call to a platform. After a timeout, the outcome of the call is unknown. */
const CALL_TIMEOUT_MS = 15_000;

/** Makes one call to a platform. Rejects after `timeoutMs`. If the right is lost, rejects without making the call. */
export async function callPlatform<T>(
  right: Right,
  call: (signal: AbortSignal) => Promise<T>,
  timeoutMs = CALL_TIMEOUT_MS,
): Promise<T> {
  // Without a fence, there is nothing to check, so the call starts in the same tick.
  if (canBeTakenOver(right)) await checkRight(right);
  return runWithin(timeoutMs, call, NEVER);
}

export function toCallResult({ budget }: Receipt): CallResult {
  return budget === undefined ? { ok: true } : { ok: true, budget };
}

/** True if the platform would refuse the same call again. */
export function isRefusal(error: unknown): boolean {
  return error instanceof SinkError && error.kind !== "unavailable" && error.kind !== "rate-limited";
}

/**
 * The result of a failed call that can be retried. After a rate limit, the retry waits for the time that the platform
 * gives, or for one second.
 */
export function toFailed({ kind, retryAfterMs = 1_000 }: SinkError): CallResult {
  return kind === "rate-limited" ? { ok: false, retryAfterMs } : { ok: false };
}

/** An edit that shows a Stop button is not final, because the message will change again. */
export function toEditKind({ buttons }: Draft): CallKind {
  return buttons.some(({ action }) => action === "stop") ? "edit" : "final";
}
