import type { DocumentText } from "./document.ts";
import { describeSize, toMarkdownTable } from "./table.ts";

const DELIMITERS = [",", ";", "\t", "|"];

/** Reads separated values, whatever character separates them, as a Markdown table that begins with its size. */
export function readCsv(text: string, maxChars: number): DocumentText {
  const table = toMarkdownTable(readRows(text, findDelimiter(text)), maxChars);
  return { ...table, text: `${describeSize(table)}\n\n${table.text}` };
}

/** Finds the character that separates the most cells in the first line. */
function findDelimiter(text: string): string {
  const [line = ""] = /^.{0,10000}/.exec(text.replace(/^\s+/, "")) ?? [];
  const plain = line.replace(/"[^"]*"/g, "");
  const counts = DELIMITERS.map((delimiter) => plain.split(delimiter).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ",";
}

/** A quote left open ends with the text: https://www.rfc-editor.org/rfc/rfc4180. Empty lines are no rows. */
function* readRows(text: string, delimiter: string): Generator<string[]> {
  const special = new RegExp(`[\\r\\n${delimiter}]`, "g");
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
