import { setTimeout as sleep } from "node:timers/promises";
import { NEVER } from "./deadlines.ts";
import { FencedError } from "./fence.ts";

export interface RetryOptions {
  /** In milliseconds, one before each further attempt: there is one attempt more than there are pauses. */
  pausesMs: Iterable<number>;
  /** True when another attempt may help; absent: always. */
  mayPass?(error: unknown): boolean;
  /** The pause that a failure asks for in place of its own, in milliseconds. */
  askedMs?(error: unknown): number | undefined;
  /** Told of each failure that another attempt follows. */
  onRetry?(error: unknown): void;
  /** Without it a pause holds the process open. */
  isIdle?: boolean;
}

/** Repeats an attempt after pauses. Rejects with the last failure, with one that does not pass, or when aborted. */
export async function retry<T>(attempt: () => Promise<T>, options: RetryOptions, signal: AbortSignal): Promise<T> {
  const { pausesMs, mayPass, askedMs, onRetry, isIdle = false } = options;
  for (const pauseMs of pausesMs) {
    try {
      return await attempt();
    } catch (error) {
      signal.throwIfAborted();
      if (mayPass?.(error) === false) throw error;
      onRetry?.(error);
      await sleep(askedMs?.(error) ?? pauseMs, undefined, { signal, ref: !isIdle }).catch(() =>
        signal.throwIfAborted(),
      );
    }
  }
  return attempt();
}

const STORE_PAUSES_MS = [200, 1_000];
/** Pauses for writes that would be missed later: together as long as a store takes to start anew. */
export const PATIENT_PAUSES_MS = [...STORE_PAUSES_MS, 2_000, 4_000];

/** Writes to a store that may be away for a moment. Resolves to whether it was written in the end. */
export async function persist(
  write: () => Promise<unknown>,
  onFailure: (error: unknown) => void,
  pausesMs: readonly number[] = STORE_PAUSES_MS,
): Promise<boolean> {
  try {
    const mayPass = (error: unknown) => !(error instanceof FencedError);
    await retry(write, { pausesMs, mayPass, onRetry: onFailure }, NEVER);
    return true;
  } catch (error) {
    onFailure(error);
    return false;
  }
}
