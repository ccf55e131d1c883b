import { createPatience } from "../support/patience.ts";

/** Lets callers wait for a state of the simulator. */
export interface Changes {
  /** Call this when something observable has changed. */
  changed(): void;
  /**
   * Resolves to the predicate's result as soon as that is neither undefined nor false. Calls the predicate at once and
   * after every change. Rejects if nothing has changed for `silenceMs` of real time. The error's message names the
   * awaited state.
   */
  until<T>(predicate: () => T | undefined | false, what?: string, silenceMs?: number): Promise<T>;
  /** Rejects all waits. */
  close(): void;
}

interface Waiter {
  look(): void;
  moved(): void;
  fail(error: unknown): void;
}

export function createChanges(): Changes {
  const waiters = new Set<Waiter>();
  let isScheduled = false;

  function lookAll(): void {
    isScheduled = false;
    for (const waiter of waiters) {
      waiter.moved();
      waiter.look();
    }
  }

  return {
    changed() {
      if (isScheduled) return;
      isScheduled = true;
      // Several changes often happen together. Waiters see all of them or none.
      queueMicrotask(lookAll);
    },
    until<T>(predicate: () => T | undefined | false, what = "a condition", silenceMs?: number) {
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      const lost = new Error(`Nothing changed any more during the wait for: ${what}.`);
      const patience = createPatience(() => waiter.fail(lost), silenceMs);
      const end = () => {
        patience.end();
        waiters.delete(waiter);
      };
      const waiter: Waiter = {
        moved: patience.moved,
        look() {
          try {
            const value = predicate();
            if (value === undefined || value === false) return;
            end();
            resolve(value);
          } catch (error) {
            waiter.fail(error);
          }
        },
        fail(error) {
          end();
          reject(error);
        },
      };
      waiters.add(waiter);
      waiter.look();
      return promise;
    },
    close() {
      for (const waiter of waiters) waiter.fail(new Error("The simulator closed during this wait."));
    },
  };
}
