import { createPatience } from "./patience.ts";

/** Lets tests wait for a change in a simulator. */
export interface Changes {
  /** Must be called after every observable change. */
  changed(): void;
  /**
   * Resolves to the predicate's first truthy value. Checks the predicate now and after every change. Rejects if nothing
   * changes for `silenceMs` of real time, or when the simulator closes. `what` names the awaited state in the error.
   */
  until<T>(predicate: () => T | undefined | false, what?: string, silenceMs?: number): Promise<T>;
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
  let isClosed = false;

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
      // Several changes often come together, so waiters see all of them or none.
      queueMicrotask(lookAll);
    },
    until<T>(predicate: () => T | undefined | false, what = predicate.toString(), silenceMs?: number) {
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
            if (!value) return;
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
      if (isClosed) waiter.fail(new Error(`The simulator is closed, so this wait would never end: ${what}.`));
      else waiter.look();
      return promise;
    },
    close() {
      isClosed = true;
      for (const waiter of waiters) waiter.fail(new Error("The simulator closed during this wait."));
    },
  };
}
