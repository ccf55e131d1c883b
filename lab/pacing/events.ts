/**
 * A queue of events in virtual time, earliest first. Events at the same time keep the order in which they were added.
 */
export interface EventQueue<T> {
  add(at: number, event: T): void;
  next(): Entry<T> | undefined;
}

interface Entry<T> {
  at: number;
  event: T;
}

/** Sorts all events once, when the first one is taken. Inserts later events in order, because they are few. */
export function createEventQueue<T>(): EventQueue<T> {
  const known: Entry<T>[] = [];
  const later: Entry<T>[] = [];
  /** Number of sorted events that were taken; undefined before the sort. */
  let taken: number | undefined;

  return {
    add(at, event) {
      if (taken === undefined) known.push({ at, event });
      else later.splice(later.findLastIndex((entry) => entry.at <= at) + 1, 0, { at, event });
    },
    next() {
      if (taken === undefined) {
        // The sort is stable.
        known.sort((a, b) => a.at - b.at);
        taken = 0;
      }
      const [first, other] = [known[taken], later[0]];
      if (first === undefined || (other !== undefined && other.at < first.at)) return later.shift();
      taken += 1;
      return first;
    },
  };
}
