import { type CodeFence, isQuoted } from "./blocks.ts";
import type { SplitLimits } from "./ruler.ts";

/** A fence that can be closed at the end of one part and opened again at the beginning of the next. */
export interface Frame {
  fence: CodeFence;
  /** The line that opens it again, and the one that closes it; both "" when there is no room for them. */
  open: string;
  close: string;
}

/** The beginning of a part, with what it carries over from the text before it. */
export interface PartStart {
  at: number;
  frame: Frame | undefined;
  /** Header and delimiter row of the table that goes on here, each with its line feed; "" outside tables. */
  header: string;
  /** Quote marks of the line that goes on here. */
  quote: string;
  /** The line before this place has not ended. */
  midLine: boolean;
}

/** The least room a frame leaves to the code: any character fits into it, in any unit. */
const CODE_ROOM_UNITS = 4;

/** Reopens a fence in the next part, without its info string, or not at all, where room is short. */
export function toFrame(fence: CodeFence, limits: SplitLimits): Frame {
  const close = fence.indent + fence.marker;
  const cost = (open: string): number => limits.lengthOf(`${open}\n${isQuoted(fence) ? fence.indent : ""}\n${close}`);
  if (cost(close + fence.info) <= limits.maxLength / 2) return { fence, open: close + fence.info, close };
  return cost(close) <= limits.maxLength - CODE_ROOM_UNITS
    ? { fence, open: close, close }
    : { fence, open: "", close: "" };
}

/** Returns the text that a part which begins at `place` shows before its own. */
export function toPrefix({ frame, header, quote, midLine }: PartStart): string {
  const lead = midLine ? quote : "";
  if (frame !== undefined) return frame.open === "" ? lead : `${frame.open}\n${lead}`;
  return midLine ? lead : header;
}

/** Returns the text that a part which ends inside `frame` shows after its own. */
export function toSuffix(frame: Frame | undefined): string {
  return frame === undefined || frame.close === "" ? "" : `\n${frame.close}`;
}
