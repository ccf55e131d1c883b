import { setTimeout as sleep } from "node:timers/promises";
import { FencedError } from "../port/right.ts";
import { NEVER } from "./deadlines.ts";

export interface RetryOptions {
  /** The pauses before the retries, in milliseconds. There is one attempt more than pauses. */
  pausesMs: Iterable<number>;
  /** Whether a retry can help; absent: it always can. */
  mayPass?(error: unknown): boolean;
  /** The pause in milliseconds that the failure itself asks for; it replaces the next one. */
  askedMs?(error: unknown): number | undefined;
  /** Called with each failure before its retry. */
  onRetry?(error: unknown): void;
  /** If true, pauses do not keep the process alive. */
  isIdle?: boolean;
}

/**
 * Retries a failed attempt after pauses. Rejects with the last failure, with one that a retry cannot help, or on abort.
 */
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
/** Pauses for important writes. Their sum is the time that a store needs to restart. */
export const PATIENT_PAUSES_MS = [...STORE_PAUSES_MS, 2_000, 4_000];

/** Writes to a store that can be briefly unavailable. Resolves to whether the write succeeded. */
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
