import { isDelimiterRow } from "../../../src/text/blocks.ts";
import { widthOf, wrap } from "./width.ts";

/** Columns of text in one line, over all columns of the table; what is longer wraps inside its cell. */
const LINE_WIDTH = 96;
const LEAST_CELL = 8;
const CELL_BREAK = /(?<!\\)\|/;

/**
 * Reads the table that begins at `lines[at]`; undefined when none does. Resolves to how many lines it takes, and its
 * rendering: Discord shows no tables, but columns that line up in a block of code.
 */
export function readTable(lines: readonly string[], at: number): { count: number; shown: string } | undefined {
  const [head = "", rule = ""] = lines.slice(at, at + 2);
  if (!head.includes("|") || !isDelimiterRow(rule)) return undefined;
  const header = readCells(head);
  const rules = readCells(rule);
  if (rules.length !== header.length) return undefined;
  let count = 2;
  while (lines[at + count]?.includes("|") === true && !isFence(lines[at + count])) count += 1;
  const rows = lines.slice(at + 2, at + count).map((line) => toRow(readCells(line), header.length));
  return { count, shown: render([header, ...rows], rules) };
}

function isFence(line: string | undefined): boolean {
  return /^[ \t>]*(?:`{3}|~{3})/.test(line ?? "");
}

function readCells(line: string): string[] {
  const inner = line
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "");
  return inner.split(CELL_BREAK).map(toPlain);
}

/** In code nothing is formatted, so the marks would be read as letters. */
function toPlain(cell: string): string {
  return cell
    .replaceAll("\\|", "|")
    .replace(/!?\[([^[\]]*)\]\(<?([^()\s<>]*)>?[^()]*\)/g, (_, text: string, url: string) =>
      text === "" || text === url ? url : `${text} (${url})`,
    )
    .replace(/(\*\*|__|~~)(?=\S)(.*?)(?<=\S)\1/g, "$2")
    .replace(/(?<![\w*])\*(?=[^\s*])([^*]*)(?<=[^\s*])\*(?![\w*])/g, "$1")
    .replace(/(`+)(.+?)\1/g, "$2")
    .replaceAll("```", "'''")
    .replace(/<br\s*\/?>/gi, " ")
    .replace(/\s+/g, " ")
    .trim();
}

/** As many cells as the header has; what is too many stays in the last one. */
function toRow(cells: readonly string[], count: number): string[] {
  const row = Array.from({ length: count }, (_, index) => cells[index] ?? "");
  return cells.length <= count ? row : [...row.slice(0, -1), cells.slice(count - 1).join(" | ")];
}

function render(rows: readonly string[][], rules: readonly string[]): string {
  const most = Math.max(LEAST_CELL, Math.floor(LINE_WIDTH / rules.length));
  const widths = rules.map((_, column) => {
    return Math.max(1, ...rows.map((row) => Math.min(most, widthOf(row[column] ?? ""))));
  });
  const lines = rows.map((row) => renderRow(row, widths, rules));
  const rule = widths.map((width) => "─".repeat(width)).join("─┼─");
  return ["```", ...(lines[0] ?? []), rule, ...lines.slice(1).flat(), "```"].join("\n");
}

function renderRow(row: readonly string[], widths: readonly number[], rules: readonly string[]): string[] {
  const cells = row.map((cell, column) => wrap(cell, widths[column] ?? 1));
  const height = Math.max(...cells.map((lines) => lines.length));
  return Array.from({ length: height }, (_, index) => {
    const parts = cells.map((lines, column) => pad(lines[index] ?? "", widths[column] ?? 1, rules[column] ?? ""));
    return parts.join(" │ ").trimEnd();
  });
}

/** Aligned as the row of dashes says: `---:` to the right, `:---:` to the middle. */
function pad(text: string, width: number, rule: string): string {
  const room = Math.max(0, width - widthOf(text));
  if (!rule.endsWith(":")) return text + " ".repeat(room);
  const left = rule.startsWith(":") ? Math.floor(room / 2) : room;
  return " ".repeat(left) + text + " ".repeat(room - left);
}
