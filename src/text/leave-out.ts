import { characterEnd, characterStart } from "./graphemes.ts";

/** Replaces a text's middle with a mark, because questions are usually at the ends. `keptChars` excludes the mark. */
export function leaveOut(text: string, keptChars: number): string {
  if (keptChars >= text.length) return text;
  const from = characterStart(text, Math.max(Math.ceil(keptChars / 2), 0));
  const to = characterEnd(text, text.length - Math.floor(keptChars / 2));
  return `${text.slice(0, from)}\n[… ${to - from} characters left out …]\n${text.slice(to)}`;
}
