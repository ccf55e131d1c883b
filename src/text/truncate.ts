import { characterStart } from "./graphemes.ts";

/** Returns the text, or its beginning followed by `mark`: at most `maxChars` UTF-16 units, and no split character. */
export function truncate(text: string, maxChars: number, mark = "…"): string {
  if (text.length <= maxChars) return text;
  return text.slice(0, characterStart(text, Math.max(0, maxChars - mark.length))) + mark;
}
