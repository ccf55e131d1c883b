/** Events in virtual time: the earliest first, in the order of entry at one instant. */
export interface EventQueue<T> {
  add(at: number, event: T): void;
  next(): { at: number; event: T } | undefined;
}

interface Entry<T> {
  at: number;
  order: number;
  event: T;
}

export function createEventQueue<T>(): EventQueue<T> {
  const heap: Entry<T>[] = [];
  let entered = 0;

  const isBefore = (a: Entry<T>, b: Entry<T>) => a.at < b.at || (a.at === b.at && a.order < b.order);

  function swap(i: number, j: number): void {
    const [a, b] = [heap[i], heap[j]];
    if (a === undefined || b === undefined) return;
    heap[i] = b;
    heap[j] = a;
  }

  function isOrdered(parent: number, child: number): boolean {
    const [a, b] = [heap[parent], heap[child]];
    return a === undefined || b === undefined || isBefore(a, b);
  }

  return {
    add(at, event) {
      heap.push({ at, order: entered++, event });
      for (let i = heap.length - 1; i > 0 && !isOrdered((i - 1) >> 1, i); i = (i - 1) >> 1) swap(i, (i - 1) >> 1);
    },
    next() {
      swap(0, heap.length - 1);
      const first = heap.pop();
      for (let i = 0; ; ) {
        const child = isOrdered(2 * i + 1, 2 * i + 2) ? 2 * i + 1 : 2 * i + 2;
        if (isOrdered(i, child)) break;
        swap(i, child);
        i = child;
      }
      return first;
    },
  };
}
