/** Finds spans in one block of Markdown, and the spans that are still open at its end. */

import { skip } from "./sticky.ts";

export interface Span {
  start: number;
  end: number;
  /** True for emphasis, which should stay whole. Any other span loses its meaning if it is split. */
  soft: boolean;
}

/**
 * A span that has not ended. To close it, `code` and emphasis (`*`, `_`, `~`) need `length` marks. `text` is the text
 * of a link or an image, `target` its address, `angle` a mention in `<…>`.
 */
export interface OpenMark {
  kind: "code" | "*" | "_" | "~" | "text" | "target" | "angle";
  start: number;
  length: number;
}

export interface InlineScan {
  spans: Span[];
  /** The open spans, the outermost first. */
  open: OpenMark[];
}

interface Scan extends InlineScan {
  text: string;
  from: number;
  to: number;
  /** True if more text can follow `to`, so that a mark directly before `to` is uncertain. */
  growing: boolean;
  brackets: number[];
  codeRuns: Map<number, number[]>;
  parens: Map<number, number>;
}

/** Maximum nesting. Deeper emphasis counts as plain text. The limit also shortens the search for its start. */
const MAX_DEPTH = 16;
/** Matches `<…>`: an address, or at most 256 other characters, enough for Slack's dates with a fallback text. */
const ANGLE = /<(?:[@#!:/]|a:|t:|id:)[^<>\n]{0,256}>|<(?:https?:|mailto:)[^<>\s]*>/y;
const OPEN_ANGLE = /<(?:[@#!:/]|a:|t:|id:|https?:|mailto:)?[^<>\n]{0,256}/y;
const ADDRESS = /https?:\/\/[^\s<>`。、，！？「」『』（）]*/y;
/** Matches an address that is the text of a link: `[https://a](https://b)`. */
const ADDRESS_AS_WORDS = /https?:\/\/[^\s<>`[\]。、，！？「」『』（）]*/y;
const REFERENCE = /\[[^[\]\n]{0,200}\]?/y;
const ENTITY = /&#?\w{0,31};?/y;
const WORD = /[\p{L}\p{N}]/u;

/**
 * Scans the block `text.slice(from, to)` in linear time. If `growing`, marks and spans that reach `to` count as open.
 * Where CommonMark would need the whole text, chooses the interpretation that keeps more together.
 */
export function scanInline(text: string, from: number, to: number, growing: boolean): InlineScan {
  const scan: Scan = {
    text,
    from,
    to,
    growing,
    spans: [],
    open: [],
    brackets: [],
    codeRuns: readCodeRuns(text, from, to, growing),
    parens: readParens(text, from, to),
  };
  let at = from;
  while (at < to) at = step(scan, at);
  for (const start of scan.brackets) scan.open.push({ kind: "text", start, length: 1 });
  // Spans are recorded at their end, but callers need them in the order of their start.
  scan.open.sort((a, b) => a.start - b.start);
  return { spans: scan.spans, open: scan.open };
}

/** Reads the span at `at`. Returns where to continue. */
function step(scan: Scan, at: number): number {
  const { text, to } = scan;
  const char = text[at] ?? "";
  switch (char) {
    case "\\":
      return keep(scan, at, Math.min(at + 2, to));
    case "`":
      return readCode(scan, at);
    case "<":
      return readAngle(scan, at);
    case "&":
      return readEntity(scan, at);
    case "h":
      return readAddress(scan, at);
    case "[":
      scan.brackets.push(text[at - 1] === "!" && at > scan.from ? at - 1 : at);
      return at + 1;
    case "]":
      return readLink(scan, at);
    case "*":
    case "_":
    case "~":
      return readEmphasis(scan, at, char);
    default:
      return at + 1;
  }
}

function keep(scan: Scan, start: number, end: number): number {
  if (end - start > 1) scan.spans.push({ start, end, soft: false });
  return end;
}

/** Treats the rest of the block as one unfinished span. */
function leaveOpen(scan: Scan, kind: OpenMark["kind"], start: number, length: number): number {
  scan.open.push({ kind, start, length });
  return scan.to;
}

function readCode(scan: Scan, at: number): number {
  const length = runLength(scan.text, at, scan.to);
  const runs = scan.codeRuns.get(length) ?? [];
  // The runs are in reverse order, so that the next run is at the end and can be popped.
  while ((runs.at(-1) ?? Infinity) <= at) runs.pop();
  const closing = runs.pop();
  return closing === undefined ? leaveOpen(scan, "code", at, length) : keep(scan, at, closing + length);
}

function readEntity(scan: Scan, at: number): number {
  const end = skip(ENTITY, scan.text, at);
  const isEntity = scan.text[end - 1] === ";" || (end >= scan.to && scan.growing);
  return keep(scan, at, isEntity ? Math.min(end, scan.to) : at + 1);
}

function readAngle(scan: Scan, at: number): number {
  const end = skip(ANGLE, scan.text, at);
  if (end > at && end <= scan.to) return keep(scan, at, end);
  const openEnd = skip(OPEN_ANGLE, scan.text, at);
  const beginning = scan.text.slice(at, Math.min(at + 8, scan.to));
  const isKnown = /^<(?:[@#!:/]|a:|t:|id:|https?:|mailto:)/.test(beginning);
  if (openEnd >= scan.to && (isKnown || (scan.growing && at + 8 > scan.to)))
    return leaveOpen(scan, "angle", at, scan.to - at);
  return at + 1;
}

function readAddress(scan: Scan, at: number): number {
  const { text, to } = scan;
  if (at > scan.from && /[A-Za-z0-9]/.test(text[at - 1] ?? "")) return at + 1;
  const beginning = text.slice(at, to);
  if (scan.growing && to - at < 8 && ("https://".startsWith(beginning) || "http://".startsWith(beginning)))
    return keep(scan, at, to);
  const found = skip(scan.brackets.length > 0 ? ADDRESS_AS_WORDS : ADDRESS, text, at);
  if (found === at) return at + 1;
  let end = Math.min(found, to);
  // In `[a](https://b)` and `**https://c**` the last marks do not belong to the address.
  const paren = text.slice(at, end).indexOf(")");
  const isClosed = paren !== -1 && !text.slice(at, at + paren).includes("(");
  if (isClosed) end = at + paren;
  else if (found >= to && scan.growing) return keep(scan, at, to);
  while (end > at && ".,;:!?*_~'\"]".includes(text[end - 1] ?? "")) end--;
  return keep(scan, at, Math.max(end, at + 1));
}

function readLink(scan: Scan, at: number): number {
  const { text, to, brackets } = scan;
  const start = brackets.at(-1);
  if (start === undefined) return at + 1;
  // Only the next character shows whether an address follows.
  if (at + 1 >= to && scan.growing) return to;
  brackets.pop();
  if (at + 1 < to && text[at + 1] === "(") {
    const close = scan.parens.get(at + 1);
    if (close === -1) return leaveOpen(scan, "target", start, at - start);
    return close === undefined ? at + 2 : keep(scan, start, close + 1);
  }
  if (at + 1 < to && text[at + 1] === "[") {
    const end = skip(REFERENCE, text, at + 1);
    if (end >= to && text[to - 1] !== "]") return leaveOpen(scan, "target", start, at - start);
    if (end <= to && text[end - 1] === "]") return keep(scan, start, end);
  }
  return at + 1;
}

/** Opens or closes emphasis by the white space around its marks. `_` does not work within words, `~` only in pairs. */
function readEmphasis(scan: Scan, at: number, kind: "*" | "_" | "~"): number {
  const { text, to, open } = scan;
  const length = runLength(text, at, to);
  const end = at + length;
  const before = at > scan.from ? (text[at - 1] ?? " ") : " ";
  const after = end < to ? (text[end] ?? " ") : undefined;
  const inWord = kind === "_" && WORD.test(before) && after !== undefined && WORD.test(after);
  if (inWord || (kind === "~" && length !== 2)) return end;

  const left = /\S/.test(before) ? closeEmphasis(scan, kind, length, end) : length;
  // A single mark after a word at the end of the text is more likely a footnote mark than the start of emphasis.
  const opens = after === undefined ? length > 1 || !/[A-Za-z0-9]/.test(before) : /\S/.test(after);
  const opensWord = kind !== "_" || !WORD.test(before);
  if (left > 0 && opens && opensWord && open.length < MAX_DEPTH) open.push({ kind, start: end - left, length: left });
  return end;
}

/** Closes the emphasis that a run of marks before `end` can close. Returns how many of the marks are left. */
function closeEmphasis({ spans, open }: Scan, kind: OpenMark["kind"], length: number, end: number): number {
  let left = length;
  for (let i = open.length - 1; i >= 0 && left > 0; i--) {
    const mark = open[i];
    if (mark === undefined || mark.kind !== kind || (mark.length === 1 && left === 2)) continue;
    const used = Math.min(mark.length, left);
    spans.push({ start: mark.start, end, soft: true });
    left -= used;
    mark.length -= used;
    // Marks within the emphasis that are still open are plain text.
    open.length = mark.length === 0 ? i : i + 1;
  }
  return left;
}

/** Returns the positions of backtick runs by their length, in reverse order. */
function readCodeRuns(text: string, from: number, to: number, growing: boolean): Map<number, number[]> {
  const runs = new Map<number, number[]>();
  for (let at = text.lastIndexOf("`", to - 1); at >= from; at = text.lastIndexOf("`", at - 1)) {
    const end = at + 1;
    while (at > from && text[at - 1] === "`") at--;
    if (end === to && growing) continue;
    const same = runs.get(end - at);
    if (same === undefined) runs.set(end - at, [at]);
    else same.push(at);
    if (at === 0) break;
  }
  return runs;
}

/** Maps the opening parenthesis of each `](` to its closing one; -1 if the line is incomplete. */
function readParens(text: string, from: number, to: number): Map<number, number> {
  const closes = new Map<number, number>();
  let stack: number[] = [];
  for (let at = from; at < to; at++) {
    const char = text[at];
    if (char === "\\") at++;
    else if (char === "\n") stack = [];
    else if (char === "(") stack.push(at);
    else if (char === ")") {
      const opener = stack.pop();
      if (opener !== undefined && text[opener - 1] === "]") closes.set(opener, at);
    }
  }
  for (const opener of stack) closes.set(opener, -1);
  return closes;
}

function runLength(text: string, at: number, to: number): number {
  let end = at + 1;
  while (end < to && text[end] === text[at]) end++;
  return end - at;
}
