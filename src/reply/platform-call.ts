import { NEVER, runWithin } from "../concurrency/deadlines.ts";
import { checkFences, mayBeTakenOver } from "../concurrency/fence.ts";
import { SinkError } from "../port/errors.ts";
import type { CallResult } from "../port/pace.ts";
import type { Receipt } from "../port/sink.ts";

/** Longest a platform may take for one call before it counts as unanswered. */
const CALL_TIMEOUT_MS = 15_000;

/** Makes one call of a sink. Rejects when it is not answered in time, and without a call when the fence is lost. */
export async function callPlatform<T>(
  call: (signal: AbortSignal) => Promise<T>,
  timeoutMs = CALL_TIMEOUT_MS,
): Promise<T> {
  // Without fences the call begins at once.
  if (mayBeTakenOver()) await checkFences();
  return runWithin(timeoutMs, call, NEVER);
}

/** An accepted call as its pacer is told of it. */
export function toCallResult({ budget }: Receipt): CallResult {
  return budget === undefined ? { ok: true } : { ok: true, budget };
}

/** True when the platform will refuse the same call again, however often it is made. */
export function isRefusal(error: unknown): boolean {
  return error instanceof SinkError && error.kind !== "unavailable" && error.kind !== "rate-limited";
}

/** The answer to a call that may be made again. A platform that says no time for it is given a second. */
export function toFailed({ kind, retryAfterMs = 1_000 }: SinkError): CallResult {
  return kind === "rate-limited" ? { ok: false, retryAfterMs } : { ok: false };
}
