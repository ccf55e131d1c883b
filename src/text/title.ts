import { characterStart } from "./graphemes.ts";

/** Returns the start of a text as one plain line of at most `maxLetters`; "" if the text has no words. */
export function toTitle(text: string, maxLetters: number): string {
  const line = text
    .replace(/[`~|>[\]]+|(?<![\p{L}\p{N}])#+/gu, "")
    // Marks within a word stay, as in `tracker__read_file` and 2*3. A run of marks matches only from its start, because
    // trying each of thousands of marks would take seconds.
    .replace(/(?<![\p{L}\p{N}_*])[_*]+|(?<![_*])[_*]+(?![\p{L}\p{N}_*])/gu, "")
    .replace(/https?:\/\/\S+/g, "")
    .replace(/(?:(?!\u200D)[\p{C}\s])+/gu, " ")
    .trim();
  const letters = Array.from(line);
  if (letters.length <= maxLetters) return line;
  const cut = line.slice(0, characterStart(line, letters.slice(0, maxLetters - 1).join("").length));
  return `${cut.replace(/\s+\S{0,20}$/, "")}…`;
}
