/** No character in use is as long as this, in UTF-16 units. */
const LONG_CHARACTER_UNITS = 64;
/** How far to look back for a position at which a character certainly starts. */
const MAX_CONTEXT_UNITS = 1_024;

/** Matches Latin letters, Chinese characters and Korean syllables: each starts a character after any other text. */
const STARTER = /[\0-\u02FF\u3400-\u9FFF\uAC00-\uD7A3]/;

/** Matches half of a flag: a flag consists of two special letters, and each letter is a surrogate pair. */
const FLAG_UNIT = /\uD83C|[\uDDE6-\uDDFF]/;
const FLAG_UNITS = 4;

let segmenter: Intl.Segmenter | undefined;

/** Splits a text into characters as people see them. Creates the segmenter on first use, because that takes 9 ms. */
export function toGraphemes(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  return segmenter.segment(text);
}

/** Returns the last position, at `at` or earlier, that is not within a character such as a flag or a family. */
export function characterStart(text: string, at: number): number {
  return characterAt(text, at)?.start ?? at;
}

/** Returns the first position, at `at` or later, that is not within a character. */
export function characterEnd(text: string, at: number): number {
  return characterAt(text, at)?.end ?? at;
}

/**
 * Returns the character around a position; undefined between characters. Returns only a code point if the character is
 * extremely long, such as an `a` with 500 accents.
 */
function characterAt(text: string, at: number): { start: number; end: number } | undefined {
  if (at <= 0 || at >= text.length) return undefined;
  let from = at - 1;
  while (from > 0 && at - from < MAX_CONTEXT_UNITS && !STARTER.test(text.charAt(from))) from--;
  // In a row of flags, only the start of the row shows which letters belong together.
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
