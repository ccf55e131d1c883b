/**
 * Returns the end of the match of `pattern` at `at`, or `at` if there is none. `pattern` must be sticky, so that it
 * does not search further.
 */
export function skip(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}
