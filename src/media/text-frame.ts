import { createHash } from "node:crypto";
import { estimateTokenCount, sliceByTokens } from "tokenx";
import { truncate } from "../text/truncate.ts";

export interface LoadedText {
  /** Safe to show (see `toShownFileName`). */
  name: string;
  text: string;
  /** Describes what is missing, as in `DocumentText`. */
  leftOut?: string;
}

export interface FrameBounds {
  /** The character offset at which the frame starts. */
  from?: number;
  /** The limit for the framed text, including the frame. */
  maxTokens: number;
  /** The limit for the shown part of the file, in UTF-16 units. */
  maxChars?: number;
  tool?: string;
}

export interface FramedText {
  text: string;
  /** The estimated number of tokens. */
  tokens: number;
  /** True if the file's text continues. */
  isTruncated: boolean;
}

export const FRAME_TOKENS = 60;
/** Assumed maximum length of a token. White space can be longer, because the estimate does not count it. */
const MAX_CHARS_PER_TOKEN = 8;
/** Maximum number of tokens to count at once. More would block the thread for longer than 25 ms. */
const MAX_TOKENS = 25_000;

/**
 * Frames a file's text. The frame contains a digest of the text, so the text cannot fake the end of the frame. If the
 * text is truncated, the frame names the offset of the rest. Pure, so the same file always produces the same request.
 */
export function frameText({ name, text, leftOut }: LoadedText, bounds: FrameBounds): FramedText {
  const { from = 0, maxTokens, maxChars = Infinity, tool = "read_file" } = bounds;
  const most = Math.max(0, Math.min(maxTokens - FRAME_TOKENS, MAX_TOKENS));
  const { shown, tokens } = truncateToTokens(text.slice(from), most, maxChars);
  const end = from + shown.length;
  const isTruncated = end < text.length;
  const clean = removeControls(shown);
  const mark = createHash("sha256").update(clean).digest("hex").slice(0, 16);
  const rest = [
    isTruncated && `truncated at character ${end} of ${text.length}; call ${tool} with "from": ${end} to read on`,
    leftOut ?? false,
  ].filter((part) => part !== false);
  const note = rest.length === 0 ? "" : `\n[${mark}: ${rest.join("; ")}]`;
  return {
    isTruncated,
    tokens: tokens + FRAME_TOKENS,
    text: `<file name="${name}" mark="${mark}">\n${clean}${note}\n</file mark="${mark}">`,
  };
}

function truncateToTokens(text: string, maxTokens: number, maxChars: number): { shown: string; tokens: number } {
  const bounded = text.slice(0, Math.min(maxTokens * MAX_CHARS_PER_TOKEN, maxChars));
  const tokens = estimateTokenCount(bounded);
  const shown = tokens <= maxTokens ? bounded : sliceByTokens(bounded, 0, maxTokens);
  const whole = shown.length < text.length ? truncate(text, shown.length, "") : shown;
  return { shown: whole, tokens: Math.min(tokens, maxTokens) };
}

/** Removes C0 and C1 characters except line breaks and tabs: a log's terminal codes mean nothing to a model. */
function removeControls(text: string): string {
  return text.replace(/\r\n?/g, "\n").replace(/[\p{Cc}--[\n\t]]/gv, "");
}
