/** Makes each lookup once per signal, so a new piece of work, with a new signal, looks everything up again. */
export type SharedLookups = <T>(signal: AbortSignal, key: string, find: () => Promise<T>) => Promise<T>;

/** Aborts with `signal`. For this signal, everything is looked up again. */
export function toFreshLookups(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal]);
}

export function createSharedLookups(): SharedLookups {
  const bySignal = new WeakMap<AbortSignal, Map<string, Promise<unknown>>>();

  return <T>(signal: AbortSignal, key: string, find: () => Promise<T>) => {
    const known = bySignal.get(signal) ?? new Map<string, Promise<unknown>>();
    bySignal.set(signal, known);
    const found = known.get(key) ?? find();
    known.set(key, found);
    return found as Promise<T>;
  };
}
