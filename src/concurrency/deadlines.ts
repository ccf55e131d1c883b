import { setTimeout as sleep } from "node:timers/promises";
import { LoggableError } from "../port/errors.ts";

/** A signal that never aborts. */
export const NEVER = new AbortController().signal;

/**
 * Runs `task` for at most `timeoutMs`. Aborts the task's signal with a `TimeoutError` after that time, or when `signal`
 * aborts. In both cases it rejects at once, even if the task continues.
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

/** Waits for `work`. After `timeoutMs`, ignores `work` and rejects with a `LoggableError` with the message `words`. */
export async function waitWithin<T>(timeoutMs: number, work: Promise<T>, words: string): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new LoggableError(words)), timeoutMs);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for `work`, but after `ms` resolves to undefined. The timer does not keep the process alive. */
export function waitAtMost<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
  return Promise.race([work, sleep(ms, undefined, { ref: false })]);
}

/** Waits for `promise`. When `signal` aborts, ignores the promise and rejects with the signal's reason. */
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

/** Resolves to `otherwise` if `ask` fails or takes longer than `ms`. */
export function askWithin<T>(ms: number, ask: (signal: AbortSignal) => Promise<T>, otherwise: T): Promise<T> {
  const signal = AbortSignal.timeout(ms);
  return untilAborted(ask(signal), signal).catch(() => otherwise);
}

/** Maps items in order, with at most `concurrency` calls at a time. Starts no further call after a rejection. */
export async function mapBounded<T, R>(
  items: readonly T[],
  concurrency: number,
  map: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const waiting = items.entries();
  let failed = false;

  // All workers share one iterator, so the next item starts as soon as a worker is free.
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
