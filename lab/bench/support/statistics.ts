export interface Summary {
  median: number;
  min: number;
  max: number;
}

/** Throws a RangeError without values. */
export function summarize(values: readonly number[]): Summary {
  const sorted = values.toSorted((left, right) => left - right);
  const middle = sorted.length / 2;
  const [min, max] = [sorted[0], sorted.at(-1)];
  const [low, high] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  if (min === undefined || max === undefined || low === undefined || high === undefined) {
    throw new RangeError("Cannot summarize: there are no values.");
  }
  return { median: (low + high) / 2, min, max };
}

/**
 * Divides each value by the base value of the same round. A busy machine slows down both, so their ratio stays the
 * same. Throws a RangeError if the lists have different lengths.
 */
export function toRatios(values: readonly number[], bases: readonly number[]): number[] {
  if (values.length !== bases.length) {
    throw new RangeError(`${values.length} rounds cannot be compared with ${bases.length}.`);
  }
  return values.map((value, round) => value / (bases[round] ?? Number.NaN));
}

/** Formats the median and its spread: `12.4 (11.9–13.1)`. */
export function describeSummary({ median, min, max }: Summary, digits: number): string {
  const [middle, low, high] = [median, min, max].map((value) => formatNumber(value, digits));
  return low === high ? `${middle}` : `${middle} (${low}–${high})`;
}

export function formatNumber(value: number, digits: number): string {
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
