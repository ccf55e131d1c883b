import { BoundedMap } from "../concurrency/bounded-map.ts";

/** Beyond this number, the drawing that was asked for longest ago is forgotten, and begins again. */
const MAX_REMEMBERED = 1000;

/** Counts a request for a drawing by its fingerprint: 1 for the first, 2 for the second. */
export type CountTake = (fingerprint: string) => number;

export function createTakes(): CountTake {
  const counts = new BoundedMap<string, number>(MAX_REMEMBERED);
  return (fingerprint) => {
    const take = (counts.get(fingerprint) ?? 0) + 1;
    counts.set(fingerprint, take);
    return take;
  };
}
