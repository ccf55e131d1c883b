export interface SplitLimits {
  /** Longest part, in the unit that `lengthOf` counts. Sensible from about 20 up. */
  maxLength: number;
  /** Length of a text as the platform counts it. Longer text should hardly ever count less: a part is then cut anew. */
  lengthOf(text: string): number;
  /** A growing part longer than this ends at the first acceptable place, so that text already read never moves. */
  keptLength?: number | undefined;
}

/** The largest boundary up to which `prefix`, text and `suffix` fit together; at least one code point. */
export type Ruler = (suffix: string) => number;

/** Measures by halving, since a unit may be anything: about fifteen calls of `lengthOf` on texts of about one part. */
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

/** The index after the code point that begins at `at`. */
export function nextCodePoint(text: string, at: number): number {
  return Math.min(at + ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1), text.length);
}

function toBoundary(text: string, at: number): number {
  return (text.codePointAt(at - 1) ?? 0) > 0xffff ? at - 1 : at;
}
