import { BoundedMap } from "../concurrency/bounded-map.ts";

/** Counts how often each drawing has been asked for. */
export interface Takes {
  /** 1 for the first request with this fingerprint, 2 for the second. */
  next(fingerprint: string): number;
}

/** Beyond this number, the one that was asked for longest ago is forgotten, and begins again. */
const MAX_REMEMBERED = 1000;

export function createTakes(): Takes {
  const counts = new BoundedMap<string, number>(MAX_REMEMBERED);

  return {
    next(fingerprint) {
      const take = (counts.get(fingerprint) ?? 0) + 1;
      counts.set(fingerprint, take);
      return take;
    },
  };
}
