/** The mark before the title of a folded quote. Other programs use it too. */
export const FOLD_MARK = "[!thinking]-";

export interface FoldedQuote {
  title: string;
  /** The lines without their quote marks. */
  lines: string[];
  /** How many lines the quote has in the text. */
  count: number;
}

export function readFoldedQuote(lines: readonly string[], at: number): FoldedQuote | undefined {
  const start = `> ${FOLD_MARK} `;
  const head = lines[at] ?? "";
  if (!head.startsWith(start)) return undefined;
  let end = at + 1;
  while (lines[end]?.startsWith(">") === true) end += 1;
  const inside = lines.slice(at + 1, end).map((line) => line.replace(/^> ?/, ""));
  return { title: head.slice(start.length), lines: inside, count: end - at };
}
