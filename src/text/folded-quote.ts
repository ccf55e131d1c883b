/** Stands before the title of a quote that is shown folded, as other programs write it. */
export const FOLD_MARK = "[!thinking]-";

/** A quote that is to be shown folded, and the place behind it. */
export interface FoldedQuote {
  title: string;
  /** Lines without their marks. */
  lines: string[];
  /** Lines of the text that the quote takes. */
  count: number;
}

/** Reads the folded quote that begins at `lines[at]`; undefined when none does. */
export function readFoldedQuote(lines: readonly string[], at: number): FoldedQuote | undefined {
  const start = `> ${FOLD_MARK} `;
  const head = lines[at] ?? "";
  if (!head.startsWith(start)) return undefined;
  let end = at + 1;
  while (lines[end]?.startsWith(">") === true) end += 1;
  const inside = lines.slice(at + 1, end).map((line) => line.replace(/^> ?/, ""));
  return { title: head.slice(start.length), lines: inside, count: end - at };
}
