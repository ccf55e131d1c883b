import { NEVER, runWithin } from "../concurrency/deadlines.ts";
import { SinkError } from "../port/errors.ts";
import type { CallKind, CallResult } from "../port/pace.ts";
import { canBeTakenOver, checkRight, type Right } from "../port/right.ts";
import type { Draft, Receipt } from "../port/sink.ts";

/** Longest time for one call to a platform. After that, its outcome is unknown. */
const CALL_TIMEOUT_MS = 15_000;

/** Makes one call with a sink. Rejects if the call times out. If the right is lost, rejects without a call. */
export async function callPlatform<T>(
  right: Right,
  call: (signal: AbortSignal) => Promise<T>,
  timeoutMs = CALL_TIMEOUT_MS,
): Promise<T> {
  // Without a fence, the call starts at once.
  if (canBeTakenOver(right)) await checkRight(right);
  return runWithin(timeoutMs, call, NEVER);
}

/** An accepted call, as the pacer counts it. */
export function toCallResult({ budget }: Receipt): CallResult {
  return budget === undefined ? { ok: true } : { ok: true, budget };
}

/** True if the platform will refuse the same call however often it is repeated. */
export function isRefusal(error: unknown): boolean {
  return error instanceof SinkError && error.kind !== "unavailable" && error.kind !== "rate-limited";
}

/** The result of a call that can be retried. The retry comes after one second, unless the platform gives a time. */
export function toFailed({ kind, retryAfterMs = 1_000 }: SinkError): CallResult {
  return kind === "rate-limited" ? { ok: false, retryAfterMs } : { ok: false };
}

/** True for a message with a Stop button, because it will change again. */
export function toEditKind({ buttons }: Draft): CallKind {
  return buttons.some(({ action }) => action === "stop") ? "edit" : "final";
}
