/** UTF-16 units of a character that is longer than any in use. */
const LONG_CHARACTER_UNITS = 64;
/** How far back a place is looked for that certainly begins a character. */
const MAX_CONTEXT_UNITS = 1_024;

/** Latin letters, Chinese characters and Korean syllables: each begins a character, whatever is before it. */
const STARTER = /[\0-\u02FF\u3400-\u9FFF\uAC00-\uD7A3]/;

/** A flag is two letters of their own, each of them a pair of units. */
const FLAG_UNIT = /\uD83C|[\uDDE6-\uDDFF]/;
const FLAG_UNITS = 4;

let segmenter: Intl.Segmenter | undefined;

/** Characters as people see them. The segmenter is made when it is first needed, because that takes 9 ms. */
export function toGraphemes(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  return segmenter.segment(text);
}

/** The last place up to `at` that is inside no character, such as a flag or a family. */
export function characterStart(text: string, at: number): number {
  return characterAt(text, at)?.start ?? at;
}

/** The first place from `at` on that is inside no character. */
export function characterEnd(text: string, at: number): number {
  return characterAt(text, at)?.end ?? at;
}

/** The character around a place; undefined between two. Of one without end, such as an `a` with 500 accents, a code point. */
function characterAt(text: string, at: number): { start: number; end: number } | undefined {
  if (at <= 0 || at >= text.length) return undefined;
  let from = at - 1;
  while (from > 0 && at - from < MAX_CONTEXT_UNITS && !STARTER.test(text.charAt(from))) from--;
  // In a row of flags only the place where the row begins tells which letters belong together.
  let row = from;
  while (row > 0 && FLAG_UNIT.test(text.charAt(row - 1))) row--;
  from -= (from - row) % FLAG_UNITS;
  const near = text.slice(from, at + LONG_CHARACTER_UNITS);
  const found = toGraphemes(near).containing(at - from);
  if (found === undefined || from + found.index === at) return undefined;
  const [start, end] = [from + found.index, from + found.index + found.segment.length];
  if (end - start <= LONG_CHARACTER_UNITS) return { start, end };
  const isInPair = (text.codePointAt(at - 1) ?? 0) > 0xffff;
  return isInPair ? { start: at - 1, end: at + 1 } : undefined;
}
