import type { BlockScan, Candidate } from "./block-scan.ts";
import { readLineKind, readQuote } from "./blocks.ts";
import { characterEnd, toGraphemes } from "./graphemes.ts";
import { type InlineScan, scanInline } from "./inline.ts";
import { nextCodePoint } from "./ruler.ts";
import { skip } from "./sticky.ts";

/** The end of a part. If it is within a line, `frame`, `header` and `quote` are what the rest of the line needs. */
export interface Cut extends Candidate {
  quote: string;
}

interface InlineView {
  /** The text from the part's start to the code point after `need`. Positions count from the part's start. */
  window: string;
  from: number;
  need: number;
  code: boolean;
  /** By position: 0 if the text can be split there, 1 within emphasis, 2 within any span that a split would destroy. */
  bonds: Uint8Array;
  graphemes?: Intl.Segments;
}

/** Maximum number of quote marks that are repeated when a quote continues. */
const MAX_QUOTE_CHARS = 16;
const SPACE = /\s/;
/** Matches text that would start a block if it were at the start of a line. */
const BLOCK_START = /\s*(?:```|~~~|[`~]{1,2}$|(?:#{1,6}|[-*+>]|\d{1,9}[.)])(?:\s|$)|\|)/y;
const FENCE_START = /\s*(?:```|~~~|[`~]{1,2}$)/y;
/** Matches the complete marker of a fence, but no inline code. */
const WHOLE_FENCE_START = /\s*(?:`{3,}(?![^\n]*`)|~~~)/y;
/** Matches if a text ends within a line that opens a fence or can become such a line. */
const IN_FENCE_LINE = /\n[ \t>*+\d.)-]*(?:[`~]{1,2}|[`~]{3}.*)$/;
/** Matches characters that can start a span that must not be split. */
const OPENERS = /[^\S\n]*[`[!<*_~\\&]+/y;
const SENTENCE_END = /[.!?…][)\]"'”’*_~]{0,3}$/;
/** Matches the number of a list item, whose full stop ends no sentence. */
const ITEM_NUMBER = /(?:^|\n)[ \t>]*\d{1,9}\.$/;
const WIDE_SENTENCE_END = /[。！？][」』）”’*_~]{0,3}$/;
const WIDE_PAUSE = /[。！？、，；：」』）]$/;
const WIDE_CLOSING = /^[。！？、，；：」』）*_~]/;

/** Chooses the best kind of end that leaves a part at least a third full. Splits a block only as a last resort. */
export function chooseCut(text: string, start: number, scan: BlockScan): Cut {
  const { need, frame } = scan;
  const view = toView(text, start, need, scan);
  const inline = (at: number | undefined): Cut | undefined =>
    at === undefined ? undefined : toInlineCut(start + at, scan);
  const filled = <T extends Candidate>(place: T | undefined, share = 1 / 3): T | undefined =>
    place !== undefined && place.at - start >= (need - start) * share ? place : undefined;
  const lines = scan.lines.findLast(({ at }) => (view.bonds[at - start] ?? 0) < 2);
  const anywhere = inline(findBoundary(view));

  const cut =
    filled(scan.heading, 2 / 3) ??
    filled(scan.block) ??
    filled(scan.item) ??
    filled(lines) ??
    inline(findBreak(view, 0, isSentenceEnd, view.need / 2)) ??
    inline(findBreak(view, 0, isWordEnd, view.need / 3)) ??
    inline(findBreak(view, 1, isWordEnd, view.need / 3)) ??
    filled(anywhere) ??
    scan.block ??
    scan.item ??
    lines ??
    inline(findBreak(view, 1, isWordEnd, 0)) ??
    anywhere ??
    scan.orphan ??
    inline(takeApart(view));
  return { quote: "", ...(cut ?? { at: need, frame, header: "" }) };
}

/**
 * Returns the first acceptable end of a part that is full enough. From `sentenceFrom` on, the end of a sentence is
 * acceptable too. Undefined if no end is acceptable.
 */
export function findDueCut(
  text: string,
  start: number,
  end: number,
  scan: BlockScan,
  sentenceFrom: number,
): Cut | undefined {
  const { due } = scan;
  const block = due ?? scan;
  const to = Math.min(due?.at ?? end, end);
  if (block.frame === undefined && sentenceFrom < to) {
    const view = toView(text, start, to, block);
    for (let at = Math.max(sentenceFrom - start, view.from + 1); at <= view.need; at++) {
      const isGood = (view.bonds[at] ?? 0) === 0 && isSentenceEnd(view, at) && isFree(view, at);
      const line = isGood ? view.window.slice(view.window.lastIndexOf("\n", at - 1) + 1, at) : "";
      if (isGood && !/row|heading/.test(readLineKind(line))) {
        return { at: start + at, frame: undefined, header: "", quote: readQuote(line, MAX_QUOTE_CHARS) };
      }
    }
  }
  return due === undefined || due.at > end ? undefined : { ...due, quote: "" };
}

/** Returns the last position between words that splits no span. Undefined if it is before `least`. */
export function findLastBreak(
  text: string,
  start: number,
  end: number,
  scan: BlockScan,
  least: number,
): Cut | undefined {
  const view = toView(text, start, end, scan);
  const from = least - start;
  const at = findBreak(view, 0, isWordEnd, from) ?? findBreak(view, 1, isWordEnd, from) ?? findBoundary(view) ?? -1;
  return at < from ? undefined : toInlineCut(start + at, scan);
}

/** Returns the last position that splits no span, even within a word. Undefined if it is before `least`. */
export function findLastBoundary(
  text: string,
  start: number,
  end: number,
  scan: BlockScan,
  least: number,
): number | undefined {
  const at = start + (findBoundary(toView(text, start, end, scan)) ?? -Infinity);
  return at < least ? undefined : at;
}

/** Returns the end of the character that contains `at`, but `at` itself if that end is after `end`. */
export function toCharacterEnd(text: string, at: number, end: number): number {
  const found = characterEnd(text, at);
  return found >= end ? at : found;
}

function toView(
  text: string,
  start: number,
  end: number,
  { blockStart, frame }: Pick<BlockScan, "blockStart" | "frame">,
): InlineView {
  const window = text.slice(start, nextCodePoint(text, end));
  const from = blockStart - start;
  const code = frame !== undefined;
  const inline = code ? { spans: [], open: [] } : scanInline(window, from, window.length, true);
  return { window, from, need: end - start, code, bonds: toBonds(inline, window.length) };
}

function toInlineCut(at: number, { frame, header, quote }: BlockScan): Cut {
  return { at, frame, header, quote };
}

/** Splits a part between words, else between characters, else between code points. It stays at least a third full. */
function takeApart(view: InlineView): number {
  const { window, need, code } = view;
  const from = skip(OPENERS, window, view.from);
  if (!code) {
    const inside = { ...view, from, bonds: toBonds(scanInline(window, from, window.length, true), window.length) };
    // Marks at the end can become a fence. As a last resort, they are treated as inline code.
    const at = [
      findBoundary(view, WHOLE_FENCE_START),
      findBreak(inside, 1, isWordEnd, need / 3),
      findBoundary(inside),
      findBoundary(inside, WHOLE_FENCE_START),
    ].find((place = 0) => place >= need / 3);
    if (at !== undefined) return at;
  }
  const shown = window.slice(0, characterStart(view, need));
  const lineAt = code ? -1 : shown.search(IN_FENCE_LINE);
  if (lineAt >= need / 3) return lineAt;
  const whole = shown.trimEnd().length;
  return whole > 0 ? whole : need;
}

function toBonds({ spans, open }: InlineScan, length: number): Uint8Array {
  const bonds = new Uint8Array(length + 1);
  if (spans.length === 0 && open.length === 0) return bonds;
  // Count only at the ends of spans, so that nested spans cost no more than flat ones.
  const soft = new Int32Array(length + 2);
  const hard = new Int32Array(length + 2);
  for (const span of spans) bind(span.soft ? soft : hard, span.start, Math.max(span.end, span.start + 1));
  for (const { kind, start } of open) bind(/[*_~]/.test(kind) ? soft : hard, start, length + 1);
  for (let at = 0, softDepth = 0, hardDepth = 0; at <= length; at++) {
    softDepth += soft[at] ?? 0;
    hardDepth += hard[at] ?? 0;
    bonds[at] = hardDepth > 0 ? 2 : softDepth > 0 ? 1 : 0;
  }
  return bonds;
}

function bind(depth: Int32Array, start: number, end: number): void {
  depth[start + 1] = (depth[start + 1] ?? 0) + 1;
  depth[end] = (depth[end] ?? 0) - 1;
}

/** Returns the last break of this kind, at `least` or later, whose bond is at most `bond`. */
function findBreak(
  view: InlineView,
  bond: number,
  isBreak: (view: InlineView, at: number) => boolean,
  least: number,
): number | undefined {
  for (let at = view.need; at > view.from && at >= least; at--) {
    if ((view.bonds[at] ?? 0) <= bond && isBreak(view, at) && isFree(view, at)) return at;
  }
  return undefined;
}

/** True if a split here leaves the meaning of the following text unchanged, and splits no character. */
function isFree(view: InlineView, at: number): boolean {
  return skip(BLOCK_START, view.window, at) === at && characterStart(view, at) === at;
}

function isWordEnd({ window }: InlineView, at: number): boolean {
  const before = window[at - 1] ?? " ";
  const after = window[at] ?? "";
  if (SPACE.test(after)) return !SPACE.test(before);
  return WIDE_PAUSE.test(before) && !WIDE_CLOSING.test(after);
}

function isSentenceEnd({ window, code }: InlineView, at: number): boolean {
  if (code) return false;
  const before = window.slice(Math.max(at - 4, 0), at);
  const after = window[at] ?? "";
  if (!SPACE.test(after)) return WIDE_SENTENCE_END.test(before) && !WIDE_CLOSING.test(after);
  if (WIDE_SENTENCE_END.test(before)) return true;
  return SENTENCE_END.test(before) && !ITEM_NUMBER.test(window.slice(Math.max(at - 20, 0), at));
}

/** Returns the last position between characters that splits no span and follows no white space. */
function findBoundary(view: InlineView, fenceStart = FENCE_START): number | undefined {
  for (let at = view.need; at > view.from; ) {
    if ((view.bonds[at] ?? 0) > 1 || SPACE.test(view.window[at - 1] ?? "") || skip(fenceStart, view.window, at) > at) {
      at--;
    } else {
      const index = characterStart(view, at);
      if (index === at) return at;
      at = index;
    }
  }
  return undefined;
}

function characterStart(view: InlineView, at: number): number {
  const { window } = view;
  // Below U+0300 each code unit is one character, except that CR and LF belong together.
  const isPlain = window.charCodeAt(at - 1) < 0x300 && window.charCodeAt(at) < 0x300 && window[at] !== "\n";
  if (isPlain || at >= window.length) return at;
  view.graphemes ??= toGraphemes(window);
  return view.graphemes.containing(at)?.index ?? at;
}
