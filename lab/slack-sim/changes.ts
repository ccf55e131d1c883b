import { createPatience } from "../../support/patience.ts";

/** Wakes whoever waits for the simulator to look a certain way. */
export interface Changes {
  /** Something that can be observed is different. */
  changed(): void;
  /**
   * Resolves to what the predicate returns once that is neither undefined nor false. It is asked at once and after
   * every change. Rejects when nothing has changed for `silenceMs` of real time, with the words that say what was
   * waited for.
   */
  until<T>(predicate: () => T | undefined | false, what?: string, silenceMs?: number): Promise<T>;
  /** Rejects whoever still waits. */
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
      // A change is often one of several made together; waiters see all of them or none.
      queueMicrotask(lookAll);
    },
    until<T>(predicate: () => T | undefined | false, what = "what was waited for", silenceMs?: number) {
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      const lost = new Error(`Nothing changed any more, and this did not come: ${what}.`);
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
      for (const waiter of waiters) waiter.fail(new Error("The simulator was closed while this was waited for."));
    },
  };
}
