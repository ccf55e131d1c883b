import { createKeyedQueue } from "../../src/concurrency/keyed-queue.ts";
import type { Stores } from "../../src/store/keyv.ts";

const { run } = createKeyedQueue();

/** Turns within this process, for a store that the test opens itself. */
export function turnsOver(open: Stores["open"]): Stores["inTurn"] {
  return (name, task) => run(name, () => task(open));
}

/** Wraps all namespaces of a store: those that are opened directly, those in a turn, and those under another right. */
export function wrapStores(stores: Stores, wrap: (stores: Stores) => Stores): Stores {
  const wrapped = wrap(stores);
  return {
    ...wrapped,
    inTurn: (name, task) => wrapped.inTurn(name, (open) => task(wrap({ ...stores, open }).open)),
    under: (right) => wrapStores(stores.under(right), wrap),
  };
}
