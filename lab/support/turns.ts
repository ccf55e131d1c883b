import { createKeyedQueue } from "../../src/concurrency/keyed-queue.ts";
import type { Stores } from "../../src/store/keyv.ts";

const { run } = createKeyedQueue();

/** Runs tasks in turn within this process, on a store that the test opens itself. */
export function turnsOver(open: Stores["open"]): Stores["inTurn"] {
  return (name, task) => run(name, () => task(open));
}

/** Wraps every way to open a store: directly, in a turn, and for another piece of work. */
export function wrapStores(stores: Stores, wrap: (stores: Stores) => Stores): Stores {
  const wrapped = wrap(stores);
  return {
    ...wrapped,
    inTurn: (name, task) => wrapped.inTurn(name, (open) => task(wrap({ ...stores, open }).open)),
    under: (right) => wrapStores(stores.under(right), wrap),
  };
}
