import { createPatience } from "../support/patience.ts";

export interface Changes {
  /** Must be called after every observable change. */
  notify(): void;
  /**
   * Resolves to the predicate's first truthy value. Checks the predicate now and after every change. Rejects if nothing
   * changes for `silenceMs`, or when the simulator closes. `what` names the awaited state in the error.
   */
  until<T>(predicate: () => T, what?: string, silenceMs?: number): Promise<NonNullable<T>>;
  close(): void;
}

interface Waiter {
  check(): void;
  moved(): void;
  fail(error: Error): void;
}

export function createChanges(): Changes {
  const waiters = new Set<Waiter>();
  let isClosed = false;

  return {
    notify() {
      for (const waiter of waiters) {
        waiter.moved();
        waiter.check();
      }
    },
    until<T>(predicate: () => T, what = predicate.toString(), silenceMs?: number) {
      return new Promise<NonNullable<T>>((resolve, reject) => {
        const lost = new Error(`Nothing happened any more, and this was waited for in vain: ${what}`);
        const patience = createPatience(() => waiter.fail(lost), silenceMs);
        const settle = (act: () => void) => {
          patience.end();
          waiters.delete(waiter);
          act();
        };
        const waiter: Waiter = {
          moved: patience.moved,
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
