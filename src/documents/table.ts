import { truncate } from "../text/truncate.ts";
import { type DocumentText, toCount } from "./document.ts";

const MAX_COLUMNS = 100;
const MAX_CELL_CHARS = 500;

/** The rows of a table. An empty cell is `undefined`. */
export type Rows = Iterable<ReadonlyArray<string | undefined>>;

export interface MarkdownTable extends DocumentText {
  rows: number;
  columns: number;
}

/** Writes a Markdown table with its first row as the heading. Counts rows that do not fit into `maxChars`. */
export function toMarkdownTable(rows: Rows, maxChars: number): MarkdownTable {
  const lines: string[] = [];
  let chars = 0;
  let shown = 0;
  let all = 0;
  let widest = 0;
  let width = 0;
  for (const row of rows) {
    all++;
    widest = Math.max(widest, row.length);
    if (shown < all - 1) continue;
    // Markdown drops cells that have no heading.
    width = Math.max(width, Math.min(row.length, MAX_COLUMNS));
    const line = toLine(row.slice(0, MAX_COLUMNS));
    chars += line.length + 1;
    if (chars > maxChars) continue;
    lines.push(line);
    shown++;
  }
  const [heading, ...rest] = lines;
  if (heading !== undefined) lines.splice(0, lines.length, pad(heading, width), toRule(width), ...rest);
  const leftOut = describeLeftOut({ shown, all, widest });
  return { text: lines.join("\n"), rows: all, columns: widest, ...(leftOut !== undefined && { leftOut }) };
}

/** Says "3 rows, 2 columns". Counts the heading as a row. */
export function describeSize({ rows, columns }: Pick<MarkdownTable, "rows" | "columns">): string {
  return `${toCount(rows)} ${rows === 1 ? "row" : "rows"}, ${toCount(columns)} ${columns === 1 ? "column" : "columns"}`;
}

function describeLeftOut({ shown, all, widest }: { shown: number; all: number; widest: number }): string | undefined {
  const parts = [
    shown < all && `the first ${toCount(shown)} of ${toCount(all)} rows`,
    widest > MAX_COLUMNS && `the first ${MAX_COLUMNS} of ${toCount(widest)} columns`,
  ].filter((part) => part !== false);
  return parts.length === 0 ? undefined : `only ${parts.join(" and ")} were read`;
}

function toLine(cells: ReadonlyArray<string | undefined>): string {
  return `| ${cells.map((cell) => toCell(cell ?? "")).join(" | ")} |`;
}

function toCell(text: string): string {
  return truncate(text, MAX_CELL_CHARS + 1)
    .replace(/[\p{Cc}\s]+/gu, " ")
    .replaceAll("|", "\\|")
    .trim();
}

function pad(line: string, width: number): string {
  const missing = width - (line.match(/(?<!\\)\|/g)?.length ?? 1) + 1;
  return line + "  |".repeat(Math.max(0, missing));
}

function toRule(width: number): string {
  return `|${" --- |".repeat(width)}`;
}
