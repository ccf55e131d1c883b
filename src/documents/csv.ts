import type { DocumentText } from "./document.ts";
import { describeSize, toMarkdownTable } from "./table.ts";

const DELIMITERS = [",", ";", "\t", "|"];
/** Matches a first line that names the delimiter, as Excel writes and reads it. */
const NAMED = /^"?sep=([^\w\r\n"])"?(?:\r\n?|\n|$)/i;
const QUOTED = /(?<=^|[,;\t|])(?:"[^"]*")+/gm;
/** The delimiter is detected in the first characters of a text, up to this many. */
const SAMPLE_CHARS = 64 * 1024;
const SAMPLE_LINES = 6;

/** Turns a table with any delimiter into Markdown: a line with its size, and a table. */
export function readCsv(text: string, maxChars: number): DocumentText {
  const named = NAMED.exec(text);
  const delimiter = named?.[1] ?? findDelimiter(text);
  const table = toMarkdownTable(readRows(text.slice(named?.[0].length ?? 0), delimiter), maxChars);
  return { ...table, text: `${describeSize(table)}\n\n${table.text}` };
}

/**
 * Finds the character that separates the most cells in the first line. A semicolon or tab that occurs equally often in
 * every line wins over a comma, because a comma can be part of a number such as 1,50.
 */
function findDelimiter(text: string): string {
  const [first = "", ...next] = sampleLines(text);
  const count = (line: string, delimiter: string) => line.split(delimiter).length - 1;
  const steady = [";", "\t"].filter((delimiter) => {
    const cells = count(first, delimiter);
    return cells > 0 && next.length > 0 && next.every((line) => count(line, delimiter) === cells);
  });
  const candidates = steady.length > 0 ? steady : DELIMITERS;
  const counts = candidates.map((delimiter) => count(first, delimiter));
  return candidates[counts.indexOf(Math.max(...counts))] ?? ",";
}

/** Returns the first lines that are not empty, without quoted text. */
function sampleLines(text: string): string[] {
  const lines = text
    .slice(0, SAMPLE_CHARS)
    .replace(QUOTED, "")
    .split(/[\r\n]+/);
  // Drop the sample's last line, because it can be incomplete.
  if (text.length > SAMPLE_CHARS && lines.length > 1) lines.pop();
  return lines.filter((line) => line.trim() !== "").slice(0, SAMPLE_LINES);
}

/** An unclosed quote ends with the text. Empty lines are no rows. See https://www.rfc-editor.org/rfc/rfc4180. */
function* readRows(text: string, delimiter: string): Generator<string[]> {
  const special = new RegExp(`[\\r\\n\\${delimiter}]`, "g");
  let row: string[] = [];
  let at = 0;
  while (at <= text.length) {
    let cell = "";
    if (text[at] === '"') {
      const end = findClosingQuote(text, at + 1);
      cell = text.slice(at + 1, end).replaceAll('""', '"');
      at = end + 1;
    }
    special.lastIndex = at;
    const end = special.exec(text)?.index ?? text.length;
    row.push(cell + text.slice(at, end));
    at = end + 1;
    if (text[end] === delimiter) continue;
    if (text[end] === "\r" && text[at] === "\n") at++;
    if (row.length > 1 || row[0] !== "") yield row;
    row = [];
  }
}

function findClosingQuote(text: string, from: number): number {
  let at = text.indexOf('"', from);
  while (at !== -1 && text[at + 1] === '"') at = text.indexOf('"', at + 2);
  return at === -1 ? text.length : at;
}
