import { characterEnd, characterStart } from "./graphemes.ts";

/**
 * Keeps the beginning and the end, because questions are usually there, and puts a mark between them. `keptChars` does
 * not include the mark.
 */
export function leaveOut(text: string, keptChars: number): string {
  if (keptChars >= text.length) return text;
  const from = characterStart(text, Math.max(Math.ceil(keptChars / 2), 0));
  const to = characterEnd(text, text.length - Math.floor(keptChars / 2));
  return `${text.slice(0, from)}\n[… ${to - from} characters left out …]\n${text.slice(to)}`;
}
