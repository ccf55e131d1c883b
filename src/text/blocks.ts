/** Finds where Markdown blocks begin and end. Models indent fences freely, so a fence can have any indentation here. */

import { skip } from "./sticky.ts";

export interface CodeFence {
  /** The backticks or tildes that opened the fence. */
  marker: string;
  /** The text before the marker when the fence reopens: quote marks stay, list markers become spaces. */
  indent: string;
  /** The text after the marker, such as the language. */
  info: string;
}

/**
 * A line within an open fence. `closing`: the line closes the fence. `undecided`: the text ends in this line, which can
 * still become a closing line. `content`: any other line. `end` is the position after its backticks or tildes.
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

/** Reads the opening line of a fence, which can follow list and quote markers. Undefined for another line. */
export function readFence(line: string): CodeFence | undefined {
  let at = skip(LEAD, line, 0);
  for (let next = skip(LIST_MARKER, line, at); next > at; next = skip(LIST_MARKER, line, at))
    at = skip(LEAD, line, next);
  const end = skip(FENCE_RUN, line, at);
  if (end === at) return undefined;
  const marker = line.slice(at, end);
  const info = line.slice(end).trim();
  // A line that starts with ```like this``` contains inline code and does not open a fence.
  if (marker.startsWith("`") && info.includes("`")) return undefined;
  return { marker, indent: line.slice(0, at).replace(/[^ \t>]/g, " "), info };
}

/** Reads a line within an open fence. Never reads beyond the line that starts at `start`. */
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

/** True if the fence is in a quote: it ends before the first line that is not quoted. */
export function isQuoted(fence: CodeFence): boolean {
  return fence.indent.includes(">");
}

/** Classifies a line outside fences that is not blank. The line can be incomplete. */
export function readLineKind(line: string): LineKind {
  if (/^ {0,3}#{1,6}(?:[ \t]|$)/.test(line)) return "heading";
  if (/^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/.test(line)) return "rule";
  if (/^[ \t>]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)/.test(line)) return "item";
  if (/^[ \t]*\|/.test(line)) return "row";
  return "text";
}

/** True if the line is, or can become, a table's delimiter row or the line under a heading. */
export function isUnderline(line: string): boolean {
  return /^[ \t]*[|:=-][ \t|:=-]*$/.test(line) && line.trim() !== "-";
}

export function isDelimiterRow(line: string): boolean {
  return isUnderline(line) && line.includes("-") && line.includes("|") && !line.includes("=");
}

/** Returns the quote marks at the start of a line; "" if the line has none, or more than `maxChars`. */
export function readQuote(line: string, maxChars: number): string {
  const quote = /^(?:[ \t]{0,3}>[ \t]?){1,4}/.exec(line)?.[0] ?? "";
  return quote.length > maxChars ? "" : quote;
}
