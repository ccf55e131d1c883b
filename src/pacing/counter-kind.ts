import type { Seen } from "./counter.ts";

/** An answer without other calls in flight, for the comparison with the next one. */
export interface Reference extends Seen {
  /** Seconds per call if the counter is leaky. */
  q: number;
}

/** Two resets this close are the same one, seconds. */
export const SAME_RESET = 0.02;

export function toReference(seen: Seen, n: number): Reference {
  return { ...seen, q: seen.reset / Math.max(1, n - seen.remaining) };
}

/**
 * Tells from two answers how the platform counts: the reset of a fixed window stands still, that of a leaky counter
 * moves on by `q` with each of the `between` calls. Undefined when both fit, or neither, or the answers cannot be compared.
 */
export function toKind(seen: Seen, reference: Reference, between: number): "fixed" | "leaky" | undefined {
  if (seen.over > 0 || seen.s >= reference.lo || seen.remaining > reference.remaining) return undefined;
  const fitsFixed = overlaps(seen, reference, 0);
  const fitsLeaky = overlaps(seen, reference, between * reference.q);
  if (fitsFixed === fitsLeaky) return undefined;
  return fitsFixed ? "fixed" : "leaky";
}

function overlaps(a: Seen, b: Seen, shift: number): boolean {
  return a.lo <= b.hi + shift + SAME_RESET && a.hi >= b.lo + shift - SAME_RESET;
}
