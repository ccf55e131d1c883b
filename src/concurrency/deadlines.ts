import { setTimeout as sleep } from "node:timers/promises";
import { LoggableError } from "../port/errors.ts";

/** A signal that never aborts. */
export const NEVER = new AbortController().signal;

/**
 * Runs `task` for at most `timeoutMs`. Its signal aborts when that time is over, with a `TimeoutError`, or with
 * `signal`; this rejects at the same moment, even if the task goes on.
 */
export async function runWithin<T>(
  timeoutMs: number,
  task: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  signal.throwIfAborted();
  const controller = new AbortController();
  const passOn = () => controller.abort(signal.reason);
  const timer = setTimeout(() => {
    controller.abort(new DOMException(`Not finished within ${timeoutMs} ms.`, "TimeoutError"));
  }, timeoutMs);
  signal.addEventListener("abort", passOn, { once: true });
  try {
    return await untilAborted(task(controller.signal), controller.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", passOn);
  }
}

/** Waits for `work` for at most `timeoutMs`, then rejects with a `LoggableError` of these words and ignores it. */
export async function waitWithin<T>(timeoutMs: number, work: Promise<T>, words: string): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new LoggableError(words)), timeoutMs);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for `work`, but no longer than `ms`, in which it does not hold the process open; undefined when that is over first. */
export function waitAtMost<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
  return Promise.race([work, sleep(ms, undefined, { ref: false })]);
}

/** Waits for `promise`, but not beyond the abort of `signal`: then rejects with its reason and ignores the promise. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([aborted.promise, promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Maps with at most `concurrency` calls at a time, keeping the order. Begins nothing after a rejection. */
export async function mapBounded<T, R>(
  items: readonly T[],
  concurrency: number,
  map: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const waiting = items.entries();
  let failed = false;

  // All workers draw from one iterator, so an item is begun as soon as any of them is free.
  async function work(): Promise<void> {
    for (const [index, item] of waiting) {
      try {
        results[index] = await map(item, index);
      } catch (error) {
        failed = true;
        throw error;
      }
      if (failed) return;
    }
  }

  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, work));
  return results;
}
