/**
 * Counts durations so that counts of several processes and hours can be added up. The scale has steps, each larger than
 * the one before by the eighth root of two. Percentiles are therefore off by at most 4.5 %, and sums are exact.
 */

const STEPS_PER_DOUBLING = 8;
/** One hour. A longer duration counts as one hour. */
const LONGEST_MS = 3_600_000;

/** Returns the index of the step for a duration, starting at 0. */
export function toStep(ms: number): number {
  const bounded = Math.min(LONGEST_MS, Math.max(1, ms));
  return Math.round(Math.log2(bounded) * STEPS_PER_DOUBLING);
}

function toMs(step: number): number {
  return 2 ** (step / STEPS_PER_DOUBLING);
}

export type Sketch = Map<number, number>;

export function countOf(sketch: Sketch): number {
  return sketch.values().reduce((sum, count) => sum + count, 0);
}

/** Returns a percentile in milliseconds: 0.95 gives the 95th. Undefined if the sketch is empty. */
export function percentile(sketch: Sketch, share: number): number | undefined {
  const wanted = Math.max(1, Math.ceil(countOf(sketch) * share));
  let seen = 0;
  for (const [step, count] of [...sketch].toSorted(([one], [other]) => one - other)) {
    seen += count;
    if (seen >= wanted) return toMs(step);
  }
  return undefined;
}
