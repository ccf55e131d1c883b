import { type CodeFence, isQuoted } from "./blocks.ts";
import type { SplitLimits } from "./ruler.ts";

/** A fence that is closed at the end of one part and reopened at the start of the next. */
export interface Frame {
  fence: CodeFence;
  /** The lines that reopen and close the fence. Both are "" if they do not fit into a part. */
  open: string;
  close: string;
}

/** The start of a part, together with everything that the part must repeat from the text before it. */
export interface PartStart {
  at: number;
  frame: Frame | undefined;
  /** The header and delimiter row of a table that continues here, each with its line feed. "" outside tables. */
  header: string;
  /** The quote marks of a line that continues here. */
  quote: string;
  /** True if the part starts in the middle of a line. */
  midLine: boolean;
}

/** A frame leaves at least this much space for code, so that any character fits, in any unit of length. */
const CODE_ROOM_UNITS = 4;

/** Chooses how the next part reopens a fence. If space is short, leaves out the info string, or the whole line. */
export function toFrame(fence: CodeFence, limits: SplitLimits): Frame {
  const close = fence.indent + fence.marker;
  const cost = (open: string): number => limits.lengthOf(`${open}\n${isQuoted(fence) ? fence.indent : ""}\n${close}`);
  if (cost(close + fence.info) <= limits.maxLength / 2) return { fence, open: close + fence.info, close };
  return cost(close) <= limits.maxLength - CODE_ROOM_UNITS
    ? { fence, open: close, close }
    : { fence, open: "", close: "" };
}

/** Returns the text to put before a part that starts here. */
export function toPrefix({ frame, header, quote, midLine }: PartStart): string {
  const lead = midLine ? quote : "";
  if (frame !== undefined) return frame.open === "" ? lead : `${frame.open}\n${lead}`;
  return midLine ? lead : header;
}

/** Returns the text to put after a part that ends within `frame`. */
export function toSuffix(frame: Frame | undefined): string {
  return frame === undefined || frame.close === "" ? "" : `\n${frame.close}`;
}
