import { NEVER, runWithin } from "../concurrency/deadlines.ts";
import { SinkError } from "../port/errors.ts";
import type { CallKind, CallResult } from "../port/pace.ts";
import { canBeTakenOver, checkRight, type Right } from "../port/right.ts";
import type { Draft, Receipt } from "../port/sink.ts";

/** After this time, the outcome of the call is unknown. */
const CALL_TIMEOUT_MS = 15_000;

/** Rejects after a timeout. If the right is lost, rejects without a call. */
export async function callPlatform<T>(
  right: Right,
  call: (signal: AbortSignal) => Promise<T>,
  timeoutMs = CALL_TIMEOUT_MS,
): Promise<T> {
  // Without a fence, the call starts at once.
  if (canBeTakenOver(right)) await checkRight(right);
  return runWithin(timeoutMs, call, NEVER);
}

export function toCallResult({ budget }: Receipt): CallResult {
  return budget === undefined ? { ok: true } : { ok: true, budget };
}

/** True if repeating the call cannot help. */
export function isRefusal(error: unknown): boolean {
  return error instanceof SinkError && error.kind !== "unavailable" && error.kind !== "rate-limited";
}

/** For a call that can be retried after a second, or when the platform says. */
export function toFailed({ kind, retryAfterMs = 1_000 }: SinkError): CallResult {
  return kind === "rate-limited" ? { ok: false, retryAfterMs } : { ok: false };
}

/** A message with a Stop button will change again. */
export function toEditKind({ buttons }: Draft): CallKind {
  return buttons.some(({ action }) => action === "stop") ? "edit" : "final";
}
