import { characterStart } from "./graphemes.ts";

/** The beginning of a text as one plain line of at most `maxLetters`, cut between words; "" where it has no words. */
export function toTitle(text: string, maxLetters: number): string {
  const line = text
    .replace(/[`~|>[\]]+|(?<![\p{L}\p{N}])#+/gu, "")
    // Within a word they are part of it: `tracker__read_file`, 2*3. Each run is tried once, from where it begins: a
    // search from each of thousands of marks would take seconds.
    .replace(/(?<![\p{L}\p{N}_*])[_*]+|(?<![_*])[_*]+(?![\p{L}\p{N}_*])/gu, "")
    .replace(/https?:\/\/\S+/g, "")
    .replace(/(?:(?!\u200D)[\p{C}\s])+/gu, " ")
    .trim();
  const letters = Array.from(line);
  if (letters.length <= maxLetters) return line;
  const cut = line.slice(0, characterStart(line, letters.slice(0, maxLetters - 1).join("").length));
  return `${cut.replace(/\s+\S{0,20}$/, "")}…`;
}
