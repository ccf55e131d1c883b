/** The mark before the title of a folded quote. Other programs use the same mark. */
export const FOLD_MARK = "[!thinking]-";

/** A quote that is shown folded. */
export interface FoldedQuote {
  title: string;
  /** Lines without their quote marks. */
  lines: string[];
  /** Number of lines of the quote in the text. */
  count: number;
}

/** Reads the folded quote that starts at `lines[at]`. Undefined if there is none. */
export function readFoldedQuote(lines: readonly string[], at: number): FoldedQuote | undefined {
  const start = `> ${FOLD_MARK} `;
  const head = lines[at] ?? "";
  if (!head.startsWith(start)) return undefined;
  let end = at + 1;
  while (lines[end]?.startsWith(">") === true) end += 1;
  const inside = lines.slice(at + 1, end).map((line) => line.replace(/^> ?/, ""));
  return { title: head.slice(start.length), lines: inside, count: end - at };
}
