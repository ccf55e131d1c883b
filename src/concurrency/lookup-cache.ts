import { BoundedMap } from "./bounded-map.ts";

/** A lookup that found nothing is repeated after this time. */
const MISS_MS = 60_000;

export interface LookupCacheOptions {
  /** How long a found value is reused, in milliseconds. */
  freshMs: number;
  maxEntries: number;
  now(): number;
}

/** Caches found values and, for a minute, also that nothing was found. Concurrent callers share one lookup. */
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
