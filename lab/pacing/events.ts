/** Events in virtual time: the earliest first, in the order of entry at one instant. */
export interface EventQueue<T> {
  add(at: number, event: T): void;
  next(): Entry<T> | undefined;
}

interface Entry<T> {
  at: number;
  event: T;
}

/** Most events are known before the first one is taken: sorted once, they cost next to nothing, and few come later. */
export function createEventQueue<T>(): EventQueue<T> {
  const known: Entry<T>[] = [];
  const later: Entry<T>[] = [];
  /** How many of the known ones were taken; undefined before the first one was. */
  let taken: number | undefined;

  return {
    add(at, event) {
      if (taken === undefined) known.push({ at, event });
      else later.splice(later.findLastIndex((entry) => entry.at <= at) + 1, 0, { at, event });
    },
    next() {
      if (taken === undefined) {
        // The order of entry stays: the sort is stable.
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
