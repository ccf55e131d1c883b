import { setTimeout as sleep } from "node:timers/promises";
import { FencedError } from "../port/right.ts";
import { NEVER } from "./deadlines.ts";

export interface RetryOptions {
  /** The pauses before the retries, in milliseconds. One attempt precedes the first pause. */
  pausesMs: Iterable<number>;
  /** True if a retry can help. Absent: a retry always can. */
  mayPass?(error: unknown): boolean;
  /** The pause in milliseconds that the failure itself requires; it replaces the next pause. */
  askedMs?(error: unknown): number | undefined;
  /** Called with each failure that is followed by a retry. */
  onRetry?(error: unknown): void;
  /** If true, the pauses do not keep the process alive. */
  isIdle?: boolean;
}

/** Retries after pauses. Rejects with the last failure, a failure that no retry can help, or the signal's reason. */
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
/** The pauses between attempts of an important write. Together they last about as long as a store's restart. */
export const PATIENT_PAUSES_MS = [...STORE_PAUSES_MS, 2_000, 4_000];

/** Writes to a store that can be briefly unavailable. Resolves to true if the write succeeded. */
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
