export interface SplitLimits {
  /** The maximum length of a part, as `lengthOf` counts it. Limits below about 20 work badly. */
  maxLength: number;
  /** The length of a text as the platform counts it. Longer texts should almost never count as shorter. */
  lengthOf(text: string): number;
  /** Once a growing part is longer than this, it ends at the first good position, so that shown text does not move. */
  keptLength?: number | undefined;
}

/** Returns the last boundary up to which prefix, text and suffix fit. Always includes at least one code point. */
export type Ruler = (suffix: string) => number;

/** Bisects, because the unit can be anything. Calls `lengthOf` about fifteen times, with texts as long as a part. */
export function createRuler(text: string, start: number, prefix: string, limits: SplitLimits): Ruler {
  const known = new Map<string, number>();

  function reach(suffix: string): number {
    const fits = (end: number): boolean =>
      limits.lengthOf(prefix + text.slice(start, end) + suffix) <= limits.maxLength;
    let low = nextCodePoint(text, start);
    let high = low;
    for (let step = limits.maxLength; fits(high); step *= 2) {
      low = high;
      if (high >= text.length) return text.length;
      high = toBoundary(text, Math.min(high + Math.max(step, 2), text.length));
    }
    for (;;) {
      const middle = Math.max(toBoundary(text, (low + high) >>> 1), nextCodePoint(text, low));
      if (middle >= high) return low;
      if (fits(middle)) low = middle;
      else high = middle;
    }
  }

  return (suffix) => {
    let end = known.get(suffix);
    if (end === undefined) known.set(suffix, (end = reach(suffix)));
    return end;
  };
}

export function nextCodePoint(text: string, at: number): number {
  return Math.min(at + ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1), text.length);
}

function toBoundary(text: string, at: number): number {
  return (text.codePointAt(at - 1) ?? 0) > 0xffff ? at - 1 : at;
}
