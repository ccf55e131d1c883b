/** Finds where lines begin and end Markdown blocks. Generous, as models write: a fence may have any indentation. */

import { skip } from "./sticky.ts";

export interface CodeFence {
  /** The run of backticks or tildes that opened it. */
  marker: string;
  /** Written before the marker when it is opened again: quote marks as they were, list markers as spaces. */
  indent: string;
  /** The language and whatever else follows the marker. */
  info: string;
}

/**
 * The kind of a line in an open fence. `closing`: it closes the fence. `undecided`: the text ends in it, and it
 * may still become the closing line. `content`: anything else. `end` is where its last mark stands.
 */
export interface FenceLine {
  kind: "closing" | "undecided" | "content";
  end: number;
}

export type LineKind = "heading" | "rule" | "item" | "row" | "text";

const LEAD = /[ \t>]*/y;
const LIST_MARKER = /(?:[-*+]|\d{1,9}[.)])[ \t]+/y;
const FENCE_RUN = /`{3,}|~{3,}/y;
const MARKER_RUN = { "`": /`*/y, "~": /~*/y };
const BLANK = /[^\S\n]*/y;

/** Reads the line that opens a fence; `undefined` for any other line. A fence may follow list and quote markers. */
export function readFence(line: string): CodeFence | undefined {
  let at = skip(LEAD, line, 0);
  for (let next = skip(LIST_MARKER, line, at); next > at; next = skip(LIST_MARKER, line, at))
    at = skip(LEAD, line, next);
  const end = skip(FENCE_RUN, line, at);
  if (end === at) return undefined;
  const marker = line.slice(at, end);
  const info = line.slice(end).trim();
  // ```like this``` is inline code that happens to begin a line.
  if (marker.startsWith("`") && info.includes("`")) return undefined;
  return { marker, indent: line.slice(0, at).replace(/[^ \t>]/g, " "), info };
}

/** Reads the line of an open fence that begins at `start`. Never looks past that line. */
export function readFenceLine(text: string, start: number, fence: CodeFence): FenceLine {
  const at = skip(LEAD, text, start);
  const end = skip(MARKER_RUN[fence.marker.startsWith("`") ? "`" : "~"], text, at);
  const lineEnd = skip(BLANK, text, end);
  const foreign = at - start > fence.indent.length + 3 || (!isQuoted(fence) && text.slice(start, at).includes(">"));
  if (foreign) return { kind: "content", end };
  if (lineEnd === text.length) return { kind: "undecided", end };
  if (text[lineEnd] === "\n" && end - at >= fence.marker.length) return { kind: "closing", end };
  return { kind: "content", end };
}

/** True when the fence stands in a block quote, and so ends with the first line that is not quoted. */
export function isQuoted(fence: CodeFence): boolean {
  return fence.indent.includes(">");
}

/** Classifies a line that is not blank and not in a fence, maybe by its beginning alone. */
export function readLineKind(line: string): LineKind {
  if (/^ {0,3}#{1,6}(?:[ \t]|$)/.test(line)) return "heading";
  if (/^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/.test(line)) return "rule";
  if (/^[ \t>]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)/.test(line)) return "item";
  if (/^[ \t]*\|/.test(line)) return "row";
  return "text";
}

/** True when the line is, or may become, the row under a table's header or the rule under a heading. */
export function isUnderline(line: string): boolean {
  return /^[ \t]*[|:=-][ \t|:=-]*$/.test(line) && line.trim() !== "-";
}

/** True when the line is the row of dashes under a table's header. */
export function isDelimiterRow(line: string): boolean {
  return isUnderline(line) && line.includes("-") && line.includes("|") && !line.includes("=");
}

/** The quote marks a line begins with, "" when it is not quoted or they are longer than `maxChars`. */
export function readQuote(line: string, maxChars: number): string {
  const quote = /^(?:[ \t]{0,3}>[ \t]?){1,4}/.exec(line)?.[0] ?? "";
  return quote.length > maxChars ? "" : quote;
}
