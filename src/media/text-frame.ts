import { createHash } from "node:crypto";
import { estimateTokenCount, sliceByTokens } from "tokenx";
import { truncate } from "../text/truncate.ts";

export interface LoadedText {
  /** Safe to show, see `toShownFileName`. */
  name: string;
  text: string;
  /** Names the part of the file that is not in the text, as in `DocumentText`. */
  leftOut?: string;
}

export interface FrameBounds {
  /** The character that the frame begins with. */
  from?: number;
  /** Longest framed text, frame included. */
  maxTokens: number;
  /** Longest part of the file shown, in UTF-16 units. */
  maxChars?: number;
  /** The tool that reads on. */
  tool?: string;
}

export interface FramedText {
  text: string;
  /** Estimated. */
  tokens: number;
  /** Something of the file's text follows. */
  cut: boolean;
}

/** Estimated tokens of the frame itself. */
export const FRAME_TOKENS = 60;
/** Estimated tokens rarely cover more characters than this; white space, which counts as none, would. */
const MAX_CHARS_PER_TOKEN = 8;
/** Counting more at once would hold everybody else up: 25 ms of processor time. */
const MAX_TOKENS = 25_000;

/**
 * Frames a file's text so that it cannot break out: the mark is a digest of the text. Where it is cut, the frame says
 * from which character to read on. Pure, so that the same file makes the same request.
 */
export function frameText({ name, text, leftOut }: LoadedText, bounds: FrameBounds): FramedText {
  const { from = 0, maxTokens, maxChars = Infinity, tool = "read_file" } = bounds;
  const most = Math.max(0, Math.min(maxTokens - FRAME_TOKENS, MAX_TOKENS));
  const { shown, tokens } = cutToTokens(text.slice(from), most, maxChars);
  const end = from + shown.length;
  const cut = end < text.length;
  const clean = removeControls(shown);
  const mark = createHash("sha256").update(clean).digest("hex").slice(0, 16);
  const rest = [
    cut && `cut here, at character ${end} of ${text.length}; ${tool} reads on from ${end}`,
    leftOut !== undefined && `of this file ${leftOut}`,
  ].filter((part) => part !== false);
  const note = rest.length === 0 ? "" : `\n[${mark}: ${rest.join("; ")}]`;
  return {
    cut,
    tokens: tokens + FRAME_TOKENS,
    text: `<file name="${name}" mark="${mark}">\n${clean}${note}\n</file mark="${mark}">`,
  };
}

function cutToTokens(text: string, maxTokens: number, maxChars: number): { shown: string; tokens: number } {
  const bounded = text.slice(0, Math.min(maxTokens * MAX_CHARS_PER_TOKEN, maxChars));
  const tokens = estimateTokenCount(bounded);
  const shown = tokens <= maxTokens ? bounded : sliceByTokens(bounded, 0, maxTokens);
  // A surrogate pair cut in two leaves half a character.
  const whole = shown.length < text.length ? truncate(text, shown.length, "") : shown;
  return { shown: whole, tokens: Math.min(tokens, maxTokens) };
}

/** Everything of C0 and C1 but line breaks and tabs: terminal codes in a log mean nothing to a model. */
function removeControls(text: string): string {
  return text.replace(/\r\n?/g, "\n").replace(/[\p{Cc}--[\n\t]]/gv, "");
}
