import {
  type CodeFence,
  isDelimiterRow,
  isQuoted,
  isUnderline,
  readFence,
  readFenceLine,
  readLineKind,
} from "./blocks.ts";
import { type OpenMark, scanInline } from "./inline.ts";

/** Maximum number of UTF-16 units, and also of bytes, that healing adds to a text. */
export const HEAL_ROOM_UNITS = 16;

interface Tail {
  /** The start of the text after the last closed fence. */
  proseStart: number;
  /** The fence that is open at the end, with the starts of its opening line and of its code. */
  open: { fence: CodeFence; start: number; codeStart: number } | undefined;
}

/** Matches a line that is only the beginning of a quote, a heading, an item, a rule or a fence. */
const HALF_MARKER = /^[ \t>]*(?:#{1,6}|[-+*~]|--|==?|\d{1,9}[.)])?$/;

/** Closes everything that is open in growing Markdown. Returns complete text unchanged. */
export function healMarkdown(text: string): string {
  const trimmed = text.trimEnd();
  const { proseStart, open } = readTail(trimmed);
  const healed = open === undefined ? healProse(trimmed, proseStart) : healFence(trimmed, open);
  return healed === trimmed ? text : healed;
}

function readTail(text: string): Tail {
  const tail: Tail = { proseStart: 0, open: undefined };
  for (let at = 0; at < text.length; ) {
    const feed = text.indexOf("\n", at);
    const lineEnd = feed === -1 ? text.length : feed;
    const line = text.slice(at, lineEnd);
    if (tail.open !== undefined && isQuoted(tail.open.fence) && /^[ \t]*[^\s>]/.test(line)) {
      tail.proseStart = at;
      tail.open = undefined;
    }
    if (tail.open === undefined) {
      const fence = readFence(line);
      if (fence !== undefined) tail.open = { fence, start: at, codeStart: lineEnd };
    } else if (endsFence(text, at, tail.open.fence)) {
      tail.proseStart = lineEnd;
      tail.open = undefined;
    }
    at = lineEnd + 1;
  }
  return tail;
}

function endsFence(text: string, at: number, fence: CodeFence): boolean {
  const { kind, end } = readFenceLine(text, at, fence);
  return kind === "closing" || (kind === "undecided" && text.slice(at, end).endsWith(fence.marker));
}

function healFence(text: string, { fence, start, codeStart }: NonNullable<Tail["open"]>): string {
  const lastLine = text.lastIndexOf("\n") + 1;
  const isHalfClosed = lastLine > codeStart && readFenceLine(text, lastLine, fence).kind === "undecided";
  const code = text.slice(0, isHalfClosed ? lastLine : text.length).trimEnd();
  if (code.length <= codeStart) return text.slice(0, start).trimEnd();
  const closings = [`\n${fence.indent}${fence.marker}`, `\n${fence.marker}`];
  const closing = closings.find(({ length }) => length <= HEAL_ROOM_UNITS);
  // If the closing line is too long, the opening line is removed, so the code becomes plain text.
  return closing === undefined ? text.slice(0, start) + code.slice(codeStart + 1) : code + closing;
}

function healProse(text: string, proseStart: number): string {
  const lastStart = text.lastIndexOf("\n") + 1;
  if (lastStart < proseStart) return text;
  const lastLine = text.slice(lastStart);
  const isRow = readLineKind(lastLine) === "row";
  const rows = isRow ? readRows(text, proseStart) : [];
  const isHalfHeader = rows.length === 2 && isUnderline(lastLine) && countCells(lastLine) < countCells(rows[0] ?? "");
  if (isHalfHeader || HALF_MARKER.test(lastLine)) return text.slice(0, lastStart).trimEnd();

  const from = isRow ? lastStart + lastLine.lastIndexOf("|") : readBlockStart(text, lastStart, proseStart);
  const isHalfRow =
    rows.length > 2 && isDelimiterRow(rows[1] ?? "") && rows[0]?.endsWith("|") && !lastLine.endsWith("|");
  const suffix = isHalfRow ? " |" : "";
  return healInline(text, from, HEAL_ROOM_UNITS - suffix.length) + suffix;
}

function readRows(text: string, proseStart: number): string[] {
  const rows: string[] = [];
  for (let end = text.length; end > proseStart; ) {
    const start = text.lastIndexOf("\n", end - 1) + 1;
    const line = text.slice(start, end);
    if (readLineKind(line) !== "row") break;
    rows.push(line.trimEnd());
    end = start - 1;
  }
  return rows.toReversed();
}

function countCells(row: string): number {
  return row.replaceAll(/^[ \t]*\||\|[ \t]*$/g, "").split("|").length;
}

function readBlockStart(text: string, lastStart: number, proseStart: number): number {
  let start = lastStart;
  let line = text.slice(start);
  while (start > proseStart && readLineKind(line) === "text") {
    const before = text.lastIndexOf("\n", start - 2) + 1;
    line = text.slice(before, start - 1);
    if (before < proseStart || line.trim() === "" || ["heading", "rule", "row"].includes(readLineKind(line))) break;
    start = before;
  }
  return start;
}

function healInline(text: string, from: number, room: number): string {
  const body = dropHalfLinks(text, from).trimEnd();
  if (body.length <= from) return body;
  return closeMarks(body, scanInline(body, from, body.length, false).open, room);
}

/** Keeps the words of an incomplete link, and removes an incomplete image or mention. */
function dropHalfLinks(text: string, from: number): string {
  const { open } = scanInline(text, from, text.length, false);
  let kept = "";
  let at = from;
  for (const { kind, start, length } of open) {
    if (kind !== "text" && kind !== "target" && kind !== "angle") continue;
    kept += text.slice(at, start);
    if (kind === "angle" || text[start] === "!") return text.slice(0, from) + kept;
    if (kind === "target") return text.slice(0, from) + kept + text.slice(start + 1, start + length);
    at = start + 1;
  }
  return text.slice(0, from) + kept + text.slice(at);
}

/** Closes marks, the innermost first. Removes marks that enclose nothing or need more than `room`. */
function closeMarks(text: string, open: OpenMark[], room: number): string {
  let body = text;
  let closers = "";
  for (const { kind, start, length } of open.toReversed()) {
    if (kind !== "code" && kind !== "*" && kind !== "_" && kind !== "~") continue;
    if (kind === "*" && isBetweenLetters(text, start, length)) continue;
    const mark = (kind === "code" ? "`" : kind).repeat(length);
    if (closers === "") body = dropHalfCloser(body, start + length, mark);
    if (body.length <= start + length || closers.length + length > room) {
      body = body.slice(0, start) + body.slice(start + length);
      if (closers === "") body = body.trimEnd();
    } else {
      closers += mark;
    }
  }
  return body + closers;
}

/** True for marks between letters, as in 2*3, because they are no emphasis. False in scripts without spaces. */
function isBetweenLetters(text: string, start: number, length: number): boolean {
  return /\w/.test(text[start - 1] ?? "") && /\w/.test(text[start + length] ?? "");
}

/** Removes the end of a text if it would spoil a closing mark: half of a mark, or a backslash. */
function dropHalfCloser(text: string, from: number, mark: string): string {
  let end = text.length;
  if (/[`~]/.test(mark)) while (end > from && text[end - 1] === mark[0]) end--;
  const escapes = /\\*$/.exec(text.slice(from, end))?.[0].length ?? 0;
  if (!mark.startsWith("`") && escapes % 2 === 1) end--;
  return text.slice(0, end).trimEnd();
}
