/** Returns the end of the match of `pattern` at `at`; `at` if it does not match. `pattern` must be sticky. */
export function skip(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}
