/** Wakes whoever waits for something to become true. */
export interface Changes {
  /** Something happened: every waiting predicate is asked again. */
  notify(): void;
  /**
   * Resolves to the first truthy value of `predicate`, which is asked at once and after every change.
   * Rejects with `what` in the message when `timeoutMs` have passed, or when the simulator closes.
   */
  until<T>(predicate: () => T, what?: string, timeoutMs?: number): Promise<NonNullable<T>>;
  close(): void;
}

const DEFAULT_WAIT_MS = 10_000;

interface Waiter {
  check(): void;
  fail(error: Error): void;
}

export function createChanges(): Changes {
  const waiters = new Set<Waiter>();
  let isClosed = false;

  return {
    notify() {
      for (const waiter of waiters) waiter.check();
    },
    until<T>(predicate: () => T, what = predicate.toString(), timeoutMs = DEFAULT_WAIT_MS) {
      return new Promise<NonNullable<T>>((resolve, reject) => {
        const timer = setTimeout(
          () => waiter.fail(new Error(`Waited ${timeoutMs} ms in vain for: ${what}`)),
          timeoutMs,
        );
        const settle = (act: () => void) => {
          clearTimeout(timer);
          waiters.delete(waiter);
          act();
        };
        const waiter: Waiter = {
          check() {
            try {
              const value = predicate();
              if (value) settle(() => resolve(value));
            } catch (error) {
              settle(() => reject(error instanceof Error ? error : new Error(String(error))));
            }
          },
          fail: (error) => settle(() => reject(error)),
        };
        waiters.add(waiter);
        if (isClosed) waiter.fail(new Error(`The simulator is closed; nobody can wait for: ${what}`));
        else waiter.check();
      });
    },
    close() {
      isClosed = true;
      for (const waiter of waiters) waiter.fail(new Error("The simulator was closed while somebody waited."));
    },
  };
}
