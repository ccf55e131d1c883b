import { type BlockScan, type DueFrom, NEVER_DUE, type Rest, scanBlocks } from "./block-scan.ts";
import { readFenceLine, readLineKind } from "./blocks.ts";
import { type Cut, chooseCut, findDueCut, findLastBoundary, findLastBreak, toCharacterEnd } from "./cut.ts";
import { type PartStart, toPrefix, toSuffix } from "./frame.ts";
import { createRuler, type SplitLimits } from "./ruler.ts";
import { skip } from "./sticky.ts";

/** One of the messages into which a longer text is split. */
export interface Part {
  /** The source without white space at its ends, with open fences closed and reopened and table headers repeated. */
  text: string;
  /** The part shows `source.slice(start, end)`. All parts together cover the text without gaps or overlaps. */
  start: number;
  end: number;
  /** How many UTF-16 units at the end of `text` close what is still open in the source. */
  closingLength: number;
}

/** Splits a growing text into parts. Does not repeat the work for parts that are finished. */
export interface Splitter {
  /**
   * Splits the text again, from the start if it does not continue the previous text. Holds no text back if `isOver`.
   */
  update(text: string, isOver?: boolean): Part[];
}

const SPACE = /\s*/y;
const NOTHING_OPEN = { frame: undefined, header: "", quote: "" };

/**
 * Splits Markdown into parts that fit and can be read separately. When the text grows, all parts except the last stay
 * the same. Splits between blocks if possible. Splits a mention, a link, an address or inline code only if it does not
 * fit into a part. No part is empty, unless the whole text is white space. Holds back uncertain text: half a surrogate
 * pair, a line that can become the end of an open fence, and an incomplete word or link in a part that is nearly full
 * and must keep what it has shown.
 */
export function splitMarkdown(text: string, limits: SplitLimits): Part[] {
  return createSplitter(limits).update(text);
}

/** `from` is where the first part starts, if earlier text is shown elsewhere. */
export function createSplitter(limits: SplitLimits, from = 0): Splitter {
  let settled: Part[] = [];
  let settledText = "";
  let last: PartStart | undefined;
  let growth = toGrowth(from);
  let shownText = "";

  return {
    update(text, isOver = false) {
      if (!text.startsWith(settledText)) {
        settled = [];
        settledText = "";
        last = undefined;
      }
      if (!text.startsWith(shownText)) growth = toGrowth(settled.at(-1)?.end ?? from);
      const source = /[\uD800-\uDBFF]$/.test(text.slice(-1)) ? text.slice(0, -1) : text;
      const textEnd = source.trimEnd().length;
      if (textEnd <= from)
        return text.length <= from ? [] : [{ text: "", start: from, end: text.length, closingLength: 0 }];

      let place = last ?? toPlaceAfter(source, from, limits);
      for (;;) {
        const unread = { text: source, textEnd, place, growth, isOver };
        const { shown, closingLength, next, end = textEnd } = readPart(unread, limits);
        const start = settled.at(-1)?.end ?? from;
        if (next === undefined || next.at >= textEnd) {
          if (settled.length > 0) last = place;
          settledText = source.slice(0, start);
          growth.shownEnd = end;
          shownText = source.slice(0, end);
          return [...settled, { text: shown, start, end: text.length, closingLength }];
        }
        settled.push({ text: shown, start, end: next.at, closingLength });
        place = next;
        growth = toGrowth(next.at);
      }
    },
  };
}

function toGrowth(shownEnd: number): Growth {
  return { shownEnd, reached: new Map() };
}

/** Finds where a text continues in this message, and the fence that must be reopened there. */
function toPlaceAfter(text: string, from: number, limits: SplitLimits): PartStart {
  const begin = toPlace(text, 0, NOTHING_OPEN, limits);
  if (from === 0) return begin;
  const before: Unread = { text: text.slice(0, from), textEnd: from, place: begin, growth: undefined, isOver: true };
  const { frame } = readPart(before, { ...limits, maxLength: Infinity });
  const place = toPlace(text, from, { ...NOTHING_OPEN, frame }, limits);
  if (frame === undefined || place.midLine) return place;
  const { kind, end } = readFenceLine(text, place.at, frame.fence);
  return kind === "closing" ? toPlace(text, end, NOTHING_OPEN, limits) : place;
}

interface Unread extends Rest {
  /** Undefined if people have not seen this part while it grew. */
  growth: Growth | undefined;
  isOver: boolean;
}

interface Reading {
  shown: string;
  closingLength: number;
  /** The fence that is open at the end of the shown text. */
  frame: PartStart["frame"];
  /** The end of the shown text that must stay in this part. Absent: all of the shown text must stay. */
  end?: number;
  next?: PartStart;
}

/** Reads one part. If it counts as longer once its outer white space is removed, reads it again with less text. */
function readPart(unread: Unread, limits: SplitLimits): Reading {
  for (let room = limits.maxLength; ; ) {
    const reading = readWithin(unread, { ...limits, maxLength: room });
    const excess = limits.lengthOf(reading.shown) - limits.maxLength;
    if (excess <= 0 || excess >= room) return reading;
    room -= excess;
  }
}

function readWithin({ growth, isOver, ...rest }: Unread, limits: SplitLimits): Reading {
  const { text, textEnd, place } = rest;
  const prefix = toPrefix(place);
  const ruler = createRuler(text, place.at, prefix, limits);
  const { keptLength } = limits;
  const keeper =
    keptLength === undefined || growth === undefined
      ? undefined
      : createKeeper({ ...growth, ...rest }, keptLength, limits);
  const scan = scanBlocks(rest, ruler, limits, keeper?.dueFrom);
  const show = (end: number, frame: PartStart["frame"]): Reading => {
    const closing = toSuffix(frame);
    return { shown: prefix + text.slice(place.at, end).trimEnd() + closing, closingLength: closing.length, frame };
  };
  const end = (cut: Cut): Reading => ({ ...show(cut.at, cut.frame), next: toPlace(text, cut.at, cut, limits) });

  if (scan.outcome === "closed") {
    const next = toPlace(text, scan.at, NOTHING_OPEN, limits);
    return { ...show(scan.contentEnd, scan.frame), next };
  }
  if (scan.outcome === "full") return end(keeper?.chooseCut(scan) ?? chooseCut(text, place.at, scan));
  if (keeper === undefined || isOver) return show(scan.contentEnd, scan.frame);
  const cut = keeper.findCut(scan);
  if (cut !== undefined && cut.at < textEnd) return end(cut);
  const sureEnd = Math.min(keeper.toSureEnd(scan), scan.contentEnd);
  return { ...show(sureEnd, scan.frame), end: sureEnd };
}

/** Returns where the text continues after a split. White space ends the earlier part, unless it is indentation. */
function toPlace(text: string, cutAt: number, carried: Omit<Cut, "at">, limits: SplitLimits): PartStart {
  const contentAt = skip(SPACE, text, cutAt);
  const afterFeed = cutAt === 0 || text[cutAt - 1] === "\n";
  const lastFeed = text.slice(cutAt, contentAt).lastIndexOf("\n");
  const midLine = !afterFeed && lastFeed === -1;
  const lineAt = midLine ? contentAt : cutAt + lastFeed + 1;
  // Drop indentation that would fill much of the part.
  const at = contentAt - lineAt > limits.maxLength / 3 ? contentAt : lineAt;
  // A blank line ends the table. Within a row, the header is kept for the next row.
  const goesOn = midLine || (lastFeed === -1 && text[contentAt] === "|");
  const header = goesOn ? carried.header : "";
  return { at, frame: carried.frame, quote: midLine ? carried.quote : "", midLine: midLine || at > lineAt, header };
}

/** Keeps everything that a part has shown. Ends a nearly full part at the first acceptable position. */
interface Keeper {
  dueFrom: DueFrom;
  /** Finds an early end for a part that is not full; undefined if there is no such end yet. */
  findCut(scan: BlockScan): Cut | undefined;
  chooseCut(scan: BlockScan): Cut;
  /** Returns the position up to which the text will certainly stay in this part. */
  toSureEnd(scan: BlockScan): number;
}

interface Growth {
  /** The end of the text that the part has shown. */
  shownEnd: number;
  /** The position at which the part reaches each length, by length. Set only once the text is longer than that. */
  reached: Map<number, number>;
}

/** A part that people see while it grows. */
interface Growing extends Growth, Rest {}

/** Matches a line that opens a fence or can become such a line. A part needs space for the closing line. */
const FENCE_BEGINS = /^[ \t>*+\d.)-]*(?:[`~]{0,2}$|[`~]{3})/;

function createKeeper(growing: Growing, keptLength: number, limits: SplitLimits): Keeper {
  const { text, textEnd, place, shownEnd, reached } = growing;
  const start = place.at;
  const reach = (maxLength: number): number => {
    const known = reached.get(maxLength);
    if (known !== undefined) return known;
    const end = createRuler(text, start, toPrefix(place), { ...limits, maxLength })("");
    if (end < textEnd) reached.set(maxLength, end);
    return end;
  };
  /** From here on, only complete links are shown, because an incomplete link may have to move to the next part. */
  const half = reach(keptLength / 2);
  const kept = half < textEnd ? reach(keptLength) : half;
  const isNearlyFull = kept < textEnd;
  const least = Math.max(kept, shownEnd);
  const line = isNearlyFull ? Math.max(reach((keptLength + limits.maxLength) / 2), shownEnd) : least;

  /** Shows a table row or the opening line of a fence only when it is complete, because half of it means nothing. */
  function toWholeLines(): number | undefined {
    const lineStart = text.lastIndexOf("\n", textEnd - 1) + 1;
    const lastLine = text.slice(lineStart, textEnd);
    const isNothingInPart = readLineKind(lastLine) === "row" || FENCE_BEGINS.test(lastLine);
    return isNothingInPart && lineStart >= least ? lineStart : undefined;
  }

  return {
    dueFrom: isNearlyFull ? { paragraph: least, line } : NEVER_DUE,
    findCut: (scan) => (isNearlyFull ? findDueCut(text, start, textEnd, scan, line) : undefined),
    chooseCut(scan) {
      const { need, frame, header, quote } = scan;
      const from = Math.min(least, need);
      const late = findDueCut(text, start, need, scan, line) ?? findLastBreak(text, start, need, scan, from);
      if (late !== undefined) return late;
      const cut = chooseCut(text, start, scan);
      const at = toCharacterEnd(text, Math.min(shownEnd, need), need);
      return cut.at >= at ? cut : { at, frame, header, quote };
    },
    toSureEnd(scan) {
      const isAfterCode = scan.blockStart === textEnd;
      if (half >= textEnd || scan.frame !== undefined || isAfterCode) return textEnd;
      const boundary = (least: number) => findLastBoundary(text, start, textEnd, scan, Math.max(least, shownEnd));
      // Limit how long an unclosed mark can hold back the text after it.
      if (!isNearlyFull) return boundary(Math.max(half, textEnd - (limits.maxLength - keptLength))) ?? textEnd;
      const wordEnd = findLastBreak(text, start, textEnd, scan, least)?.at;
      return toWholeLines() ?? wordEnd ?? boundary(half) ?? Math.max(half, shownEnd);
    },
  };
}
