/**
 * Returns the end of the match of `pattern` at `at`; `at` when there is none. Sticky, so that it searches nowhere else.
 */
export function skip(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}
