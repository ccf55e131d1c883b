import type { Keyv } from "keyv";
import type { Logger } from "pino";

/** Damaged keys of one kind that are logged; beyond this many no more are. */
const MAX_LOGGED_KEYS = 1_000;

/** Everything in a namespace, see `Stores.open`. */
export async function* walk({ namespace, iterator }: Keyv): AsyncGenerator<[key: string, value: unknown]> {
  if (iterator === undefined) throw new TypeError(`The store of ${namespace} cannot be walked through.`);
  yield* iterator(undefined) as AsyncIterable<[string, unknown]>;
}

/** Keys of a namespace, each once although the store may change meanwhile. */
export async function keysOf(keyv: Keyv): Promise<Set<string>> {
  return new Set(await Array.fromAsync(walk(keyv), ([key]) => key));
}

/** Logs each key once whose value cannot be read. */
export function createDamageLog(log: Logger): (key: string) => void {
  const logged = new Set<string>();
  return (key) => {
    if (logged.has(key) || logged.size >= MAX_LOGGED_KEYS) return;
    logged.add(key);
    log.error({ key }, "a stored value cannot be read and counts as absent");
  };
}
