import type { LineKind } from "./blocks.ts";
import { isDelimiterRow, isQuoted, isUnderline, readFence, readFenceLine, readLineKind, readQuote } from "./blocks.ts";
import type { Frame, PartStart } from "./frame.ts";
import { toFrame, toSuffix } from "./frame.ts";
import type { Ruler, SplitLimits } from "./ruler.ts";
import { nextCodePoint } from "./ruler.ts";
import { skip } from "./sticky.ts";

/** The beginning of a line where a part could end. */
export interface Candidate {
  at: number;
  frame: Frame | undefined;
  header: string;
}

export interface Rest {
  text: string;
  /** The end of the text without the white space that ends it. */
  textEnd: number;
  place: PartStart;
}

/** The text that a part can take, and the places found where it could end. */
export interface BlockScan {
  /**
   * `whole`: everything from here on fits. `full`: it does not, and the part ends at `need` or before.
   * `closed`: it ends at `at`, behind a line that closes its fence and is too long to be shown as it was written.
   */
  outcome: "whole" | "full" | "closed";
  at: number;
  need: number;
  /** The end of the text that is shown, and the fence that is open there. */
  contentEnd: number;
  frame: Frame | undefined;
  header: string;
  /** Quote marks of the line that did not fit. */
  quote: string;
  /** The last place of its kind: before a heading, before any block, before an item, a row or after a gap in code. */
  heading: Candidate | undefined;
  block: Candidate | undefined;
  item: Candidate | undefined;
  /** A place that parts what belongs together: a heading and its text, a table's header and its rows. */
  orphan: Candidate | undefined;
  /** Line beginnings inside the last block, which begins at `blockStart`. */
  lines: Candidate[];
  blockStart: number;
  /** The first place from which on the part is full enough to end there, and the beginning of the block before it. */
  due: (Candidate & { blockStart: number }) | undefined;
}

/** From where on a part ends at the first place there is: between paragraphs, and between any lines. */
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
  /** The kind of the line before, as far as it decides about this one. */
  previous: { kind: LineKind | "delimiter" | "opening" | "none"; line: string };
}

interface Line {
  /** The line, as far as it fits, without the white space at its end. */
  text: string;
  end: number;
  /** The place of its line feed; `undefined` when the line goes on beyond what fits, or the text ends in it. */
  feedAt: number | undefined;
  /** More of this line follows than is in `text`. */
  goesOn: boolean;
}

const BLANK_LINES = /(?:[^\S\n]*\n)*/y;
const BLANK = /[^\S\n]*/y;

/**
 * Walks lines until they no longer fit. Depends on nothing beyond the first that does not, so that a place once chosen
 * stays when the text grows.
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

/** A quoted fence ends without a closing line where the quote ends. */
function endQuotedFence(walk: Walk): void {
  const { text, at, frame } = walk;
  if (frame === undefined || !isQuoted(frame.fence) || text[skip(BLANK, text, at)] === ">") return;
  walk.frame = undefined;
  walk.previous = { kind: "none", line: "" };
  walk.blockStart = at;
}

/** Takes a line outside fences. False when it does not fit. */
function takeProse(walk: Walk, line: Line, midLine: boolean): boolean {
  const kind = midLine ? "text" : readLineKind(line.text);
  const fence = midLine ? undefined : readFence(line.text);
  if (walk.at > walk.start) noteBlock(walk, fence === undefined ? kind : "fence", line.text);
  if (!midLine) walk.quote = readQuote(line.text, walk.limits.maxLength / 4);

  const need = walk.ruler("");
  if (line.end > need || line.goesOn) return stop(walk, need);
  // A fence is known with its line feed, and only then asks for the room to close it.
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

/** A fence whose opening line was itself too long for a part: nothing closes it, and its code goes on as plain text. */
function readCutFence({ text, at }: Walk): Frame | undefined {
  const fence = readFence(text.slice(text.lastIndexOf("\n", at - 1) + 1, lineEnd(text, at)));
  return fence && { fence, open: "", close: "" };
}

/** Notes where a part could end before this line. A heading stays with what it heads, a table's header with a row. */
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
    // A fence must not be cut in its opening line, of which not all may be seen.
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

/** True when a line may make a table or a heading of the line before it, as far as it is seen. */
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

/** Takes a line inside a fence. False when it does not fit. */
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
  // The text before this place is code: no line of it may end a part.
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
