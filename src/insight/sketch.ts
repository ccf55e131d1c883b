/**
 * Durations as counters that add up: each is counted in a step of a scale whose steps grow by the eighth root of two, so
 * a percentile read from it is off by 4.5 % at most, and the sums of any number of processes and hours stay exact.
 */

const STEPS_PER_DOUBLING = 8;
/** An hour; what took longer counts as that. */
const LONGEST_MS = 3_600_000;

/** The number of the step that counts a duration, from 0 on. */
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

/** The duration that `share` (0 to 1) of all stay within, in milliseconds; undefined where nothing was counted. */
export function percentile(sketch: Sketch, share: number): number | undefined {
  const wanted = Math.max(1, Math.ceil(countOf(sketch) * share));
  let seen = 0;
  for (const [step, count] of [...sketch].toSorted(([one], [other]) => one - other)) {
    seen += count;
    if (seen >= wanted) return toMs(step);
  }
  return undefined;
}
