import { BoundedMap } from "./bounded-map.ts";

/** A look-up that found nothing is made again after this. */
const MISS_MS = 60_000;

export interface LookupCacheOptions {
  /** For how long a found value is reused, milliseconds. */
  freshMs: number;
  maxEntries: number;
  /** Milliseconds. */
  now(): number;
}

/** Remembers what was looked up, and for a minute that nothing was found. Concurrent callers share one look-up. */
export interface LookupCache {
  /** `find` must not reject. */
  get<T>(key: string, find: () => Promise<T | undefined>): Promise<T | undefined>;
}

export function createLookupCache({ freshMs, maxEntries, now }: LookupCacheOptions): LookupCache {
  const entries = new BoundedMap<string, { value: Promise<unknown>; until: number }>(maxEntries);

  return {
    async get<T>(key: string, find: () => Promise<T | undefined>) {
      const known = entries.get(key);
      if (known !== undefined && known.until > now()) return known.value as Promise<T | undefined>;
      const entry = { value: find(), until: now() + freshMs };
      entries.set(key, entry);
      const found = await entry.value;
      if (found === undefined) entry.until = now() + MISS_MS;
      return found;
    },
  };
}
