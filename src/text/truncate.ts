/** The text, or its beginning with `mark` behind it: at most `maxChars` UTF-16 units, and no half of a character. */
export function truncate(text: string, maxChars: number, mark = "…"): string {
  if (text.length <= maxChars) return text;
  return text.slice(0, Math.max(0, maxChars - mark.length)).replace(/[\uD800-\uDBFF]$/, "") + mark;
}
