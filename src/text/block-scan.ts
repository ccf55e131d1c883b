import type { LineKind } from "./blocks.ts";
import { isDelimiterRow, isQuoted, isUnderline, readFence, readFenceLine, readLineKind, readQuote } from "./blocks.ts";
import type { Frame, PartStart } from "./frame.ts";
import { toFrame, toSuffix } from "./frame.ts";
import type { Ruler, SplitLimits } from "./ruler.ts";
import { nextCodePoint } from "./ruler.ts";
import { skip } from "./sticky.ts";

/** The start of a line at which the next part can begin. A part is the text of one message. */
export interface Candidate {
  at: number;
  frame: Frame | undefined;
  header: string;
}

export interface Rest {
  text: string;
  /** The end of the text, not counting trailing white space. */
  textEnd: number;
  place: PartStart;
}

/** Says how much of the text fits into a part, and where the part can end. */
export interface BlockScan {
  /**
   * `whole`: all of the remaining text fits. `full`: the remaining text does not fit, and the part ends at `need` or
   * earlier. `closed`: the part ends at `at`, after the closing line of a fence that is too long to show unchanged.
   */
  outcome: "whole" | "full" | "closed";
  at: number;
  need: number;
  /** The end of the text that fits, and the fence that is open there. */
  contentEnd: number;
  frame: Frame | undefined;
  header: string;
  /** The quote marks of the first line that did not fit. */
  quote: string;
  /** The last possible ends before a heading, before another block, and before an item or a row. */
  heading: Candidate | undefined;
  block: Candidate | undefined;
  item: Candidate | undefined;
  /** The last possible end between a heading and its text, or between a table's header and its rows. */
  orphan: Candidate | undefined;
  /** The starts of the lines in the last block. That block starts at `blockStart`. */
  lines: Candidate[];
  blockStart: number;
  /** The first position at which the part is full enough to end, with the start of the block before that position. */
  due: (Candidate & { blockStart: number }) | undefined;
}

/** A part is due to end after the first paragraph that ends beyond `paragraph`, or the first line beyond `line`. */
export interface DueFrom {
  paragraph: number;
  line: number;
}

export const NEVER_DUE: DueFrom = { paragraph: Infinity, line: Infinity };

interface Walk extends BlockScan {
  text: string;
  start: number;
  limits: SplitLimits;
  dueFrom: DueFrom;
  ruler: Ruler;
  visibleEnd: number;
  afterGap: boolean;
  /** The previous line. Its `kind` is "none" if it does not affect the next line. */
  previous: { kind: LineKind | "delimiter" | "opening" | "none"; line: string };
}

interface Line {
  /** The part of the line that fits, without trailing white space. */
  text: string;
  end: number;
  /** The position of the line feed. Undefined if the line does not fit, or if the text ends in this line. */
  feedAt: number | undefined;
  /** True if more of the line follows `text`. */
  goesOn: boolean;
}

const BLANK_LINES = /(?:[^\S\n]*\n)*/y;
const BLANK = /[^\S\n]*/y;

/**
 * Reads lines until one does not fit. Ignores the text after it, so that the result stays the same when text is added.
 */
export function scanBlocks(
  { text, textEnd, place }: Rest,
  ruler: Ruler,
  limits: SplitLimits,
  dueFrom: DueFrom = NEVER_DUE,
): BlockScan {
  const { at, frame, header, quote } = place;
  const found = { outcome: "whole", at, need: 0, contentEnd: at, frame, header, quote } as const;
  const places = {
    heading: undefined,
    block: undefined,
    item: undefined,
    orphan: undefined,
    lines: [],
    blockStart: at,
    due: undefined,
  };
  const visibleEnd = nextCodePoint(text, ruler(""));
  const walk: Walk = Object.assign(
    { text, start: at, limits, dueFrom, ruler, visibleEnd, afterGap: false },
    found,
    places,
    {
      previous: { kind: "none", line: "" } as const,
    },
  );
  let midLine = place.midLine;
  while (walk.at < textEnd) {
    const line = readLine(walk);
    if (!midLine) endQuotedFence(walk);
    const taken = walk.frame === undefined ? takeProse(walk, line, midLine) : takeCode(walk, walk.frame, line, midLine);
    if (!taken || line.feedAt === undefined) break;
    midLine = false;
    const next = skip(BLANK_LINES, text, line.feedAt + 1);
    walk.afterGap = next > line.feedAt + 1;
    walk.at = next;
    if (walk.afterGap) walk.header = "";
  }
  return walk;
}

function readLine({ text, at, visibleEnd }: Walk): Line {
  const window = text.slice(at, visibleEnd);
  const feed = window.indexOf("\n");
  const shown = (feed === -1 ? window : window.slice(0, feed)).trimEnd();
  const end = at + shown.length;
  const next = skip(BLANK, text, end);
  const feedAt = text[next] === "\n" ? next : undefined;
  return { text: shown, end, feedAt, goesOn: feedAt === undefined && next < text.length };
}

/** A fence in a quote ends with the quote, even without a closing line. */
function endQuotedFence(walk: Walk): void {
  const { text, at, frame } = walk;
  if (frame === undefined || !isQuoted(frame.fence) || text[skip(BLANK, text, at)] === ">") return;
  walk.frame = undefined;
  walk.previous = { kind: "none", line: "" };
  walk.blockStart = at;
}

/** Adds a line outside fences. Returns false if the line does not fit. */
function takeProse(walk: Walk, line: Line, midLine: boolean): boolean {
  const kind = midLine ? "text" : readLineKind(line.text);
  const fence = midLine ? undefined : readFence(line.text);
  if (walk.at > walk.start) noteBlock(walk, fence === undefined ? kind : "fence", line.text);
  if (!midLine) walk.quote = readQuote(line.text, walk.limits.maxLength / 4);

  const need = walk.ruler("");
  if (line.end > need || line.goesOn) return stop(walk, need);
  // Without its line feed, a line may still become the opening line of a fence, which needs space for a closing line.
  const frame =
    line.feedAt === undefined ? undefined : midLine ? readCutFence(walk) : fence && toFrame(fence, walk.limits);
  const closedNeed = walk.ruler(toSuffix(frame));
  if (line.end > closedNeed) return stop(walk, closedNeed);
  walk.contentEnd = line.end;
  walk.frame = frame;
  noteTable(walk, kind, line.text);
  if (frame !== undefined) {
    walk.lines = [];
    walk.previous = { kind: "opening", line: "" };
  }
  return true;
}

/** Reads a fence whose opening line is too long for a part. It cannot be closed, so its code becomes plain text. */
function readCutFence({ text, at }: Walk): Frame | undefined {
  const fence = readFence(text.slice(text.lastIndexOf("\n", at - 1) + 1, lineEnd(text, at)));
  return fence && { fence, open: "", close: "" };
}

/** Records that a part can end before this line, but not after a heading or a table's header. */
function noteBlock(walk: Walk, kind: LineKind | "fence", line: string): void {
  const { previous, afterGap } = walk;
  const candidate = { at: walk.at, frame: undefined, header: walk.header };
  const begins = afterGap || kind !== "text" || (previous.kind !== "text" && previous.kind !== "item");
  const { blockStart, orphan } = walk;
  if (begins) {
    walk.lines = [];
    walk.blockStart = walk.at;
  }
  if (kind === "heading") {
    walk.heading = candidate;
    walk.block = candidate;
  } else if (previous.kind === "heading" || (previous.kind === "delimiter" && !afterGap)) {
    // The line can become the opening line of a fence, and a part must not end within such a line.
    if (/^[ \t>*+\d.)-]*(?:[`~]|$)/.test(line)) walk.item = candidate;
    else walk.orphan = candidate;
  } else if (!afterGap && mayUnderline(line, previous.kind)) {
    if (walk.header === "") walk.orphan = candidate;
    else walk.item = candidate;
  } else if (afterGap || kind === "fence" || kind === "rule" || previous.kind === "none") {
    walk.block = candidate;
  } else if (kind === "row") {
    if (previous.kind === "row") walk.item = candidate;
    else walk.block = candidate;
  } else if (kind === "item") {
    walk.item = candidate;
  } else if (begins) {
    walk.block = candidate;
  } else {
    walk.lines.push(candidate);
  }
  if (walk.orphan === orphan) noteDue(walk, candidate, blockStart, afterGap);
}

function noteDue(walk: Walk, candidate: Candidate, blockStart: number, isParagraph: boolean): void {
  const { paragraph, line } = walk.dueFrom;
  if (candidate.at >= (isParagraph ? paragraph : line)) walk.due ??= { ...candidate, blockStart };
}

/** True if the line can turn the previous line into a table's header or a heading. */
function mayUnderline(line: string, previous: Walk["previous"]["kind"]): boolean {
  return (previous === "row" && (line === "" || isUnderline(line))) || (previous === "text" && isUnderline(line));
}

function noteTable(walk: Walk, kind: LineKind, line: string): void {
  const isHeader = walk.header === "" && walk.previous.kind === "row" && !walk.afterGap && isDelimiterRow(line);
  if (isHeader) {
    const header = `${walk.previous.line}\n${line}\n`;
    if (walk.limits.lengthOf(header) <= walk.limits.maxLength / 4) walk.header = header;
  } else if (kind !== "row") {
    walk.header = "";
  }
  walk.previous = { kind: isHeader ? "delimiter" : kind, line };
}

/** Adds a line within a fence. Returns false if the line does not fit. */
function takeCode(walk: Walk, frame: Frame, line: Line, midLine: boolean): boolean {
  const { text, at } = walk;
  const { kind, end } = midLine ? { kind: "content", end: at } : readFenceLine(text, at, frame.fence);
  if (kind === "undecided") return false;
  if (kind === "closing") return closeFence(walk, end);

  const candidate = { at, frame, header: "" };
  if (at > walk.start && walk.previous.kind !== "opening") {
    if (walk.afterGap) walk.item = candidate;
    else walk.lines.push(candidate);
    noteDue(walk, candidate, at, false);
  }
  walk.previous = { kind: "text", line: "" };
  walk.blockStart = at;
  walk.quote = isQuoted(frame.fence) ? frame.fence.indent : "";
  const need = walk.ruler(toSuffix(frame));
  if (line.end > need || line.goesOn) return stop(walk, need);
  walk.contentEnd = line.end;
  return true;
}

function closeFence(walk: Walk, end: number): boolean {
  if (end > walk.ruler("")) {
    walk.outcome = "closed";
    walk.at = end;
    return false;
  }
  walk.contentEnd = end;
  walk.frame = undefined;
  walk.previous = { kind: "none", line: "" };
  // Start a new block here: the text before this position is code, and a part cannot end at one of its lines.
  walk.blockStart = end;
  return true;
}

function stop(walk: Walk, need: number): false {
  walk.outcome = "full";
  walk.need = need;
  return false;
}

function lineEnd(text: string, at: number): number {
  const feed = text.indexOf("\n", at);
  return feed === -1 ? text.length : feed;
}
