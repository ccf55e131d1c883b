import { type BlockScan, type DueFrom, NEVER_DUE } from "./block-scan.ts";
import { readLineKind } from "./blocks.ts";
import { type Cut, chooseCut, findDueCut, findLastBoundary, findLastBreak, toCharacterEnd } from "./cut.ts";
import { type PartStart, toPrefix } from "./frame.ts";
import { createRuler, type SplitLimits } from "./ruler.ts";

/**
 * Sees to it that a part keeps what it has shown, by ending it at the first place that will do once it is nearly full.
 */
export interface Keeper {
  dueFrom: DueFrom;
  /** Finds where a part ends although it is not full; undefined while there is no place for that. */
  findCut(scan: BlockScan): Cut | undefined;
  /** Finds where a full part ends. */
  chooseCut(scan: BlockScan): Cut;
  /** How far the text of a part that goes on is sure to stay in it. */
  toSureEnd(scan: BlockScan): number;
}

/** Remembered of a part while it grows. */
export interface Growth {
  /** The end of the text that it has shown. */
  shownEnd: number;
  /** How far certain lengths of it reach, as soon as the text is longer than that. */
  reached: Map<number, number>;
}

/** A part from its beginning. */
export interface Growing extends Growth {
  text: string;
  textEnd: number;
  place: PartStart;
}

/** A line that opens a fence, or may come to: it needs room to be closed, which may not be there. */
const FENCE_BEGINS = /^[ \t>*+\d.)-]*(?:[`~]{1,2}$|[`~]{3})/;

export function createKeeper(growing: Growing, keptLength: number, limits: SplitLimits): Keeper {
  const { text, textEnd, place, shownEnd, reached } = growing;
  const start = place.at;
  const reach = (maxLength: number): number => {
    const known = reached.get(maxLength);
    if (known !== undefined) return known;
    const end = createRuler(text, start, toPrefix(place), { ...limits, maxLength })("");
    if (end < textEnd) reached.set(maxLength, end);
    return end;
  };
  /** From here on a link or the like is shown when it is whole: it may have to go to the next part. */
  const half = reach(keptLength / 2);
  const kept = half < textEnd ? reach(keptLength) : half;
  const isNearlyFull = kept < textEnd;
  const least = Math.max(kept, shownEnd);
  const line = isNearlyFull ? Math.max(reach((keptLength + limits.maxLength) / 2), shownEnd) : least;

  /** A row, and the line that opens a fence, are whole or not there: such lines are nothing in part. */
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
      if (half >= textEnd || scan.frame !== undefined) return textEnd;
      const boundary = (least: number) => findLastBoundary(text, start, textEnd, scan, Math.max(least, shownEnd));
      // A mark that nothing closes must not hold up the text behind it for long.
      if (!isNearlyFull) return boundary(Math.max(half, textEnd - (limits.maxLength - keptLength))) ?? textEnd;
      const wordEnd = findLastBreak(text, start, textEnd, scan, least)?.at;
      return toWholeLines() ?? wordEnd ?? boundary(half) ?? Math.max(half, shownEnd);
    },
  };
}
