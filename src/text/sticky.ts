/** Where `pattern` (sticky, so that it searches nowhere else) ends when it matches at `at`; `at` when it does not. */
export function skip(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}
