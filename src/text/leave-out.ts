import { characterEnd, characterStart } from "./graphemes.ts";

/** Replaces the middle of a text with a mark: questions are usually at its ends. `keptChars` excludes the mark. */
export function leaveOut(text: string, keptChars: number): string {
  if (keptChars >= text.length) return text;
  const from = characterStart(text, Math.max(Math.ceil(keptChars / 2), 0));
  const to = characterEnd(text, text.length - Math.floor(keptChars / 2));
  return `${text.slice(0, from)}\n[… ${to - from} characters left out …]\n${text.slice(to)}`;
}
