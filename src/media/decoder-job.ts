import type { ImageMimeType } from "./sniff.ts";

export interface PictureLimits {
  /** Decoded pixels of one frame. A small file can hold billions of them. */
  maxPixels: number;
  /** Longest side, in pixels, of what is sent to the model. */
  maxSide: number;
  /** Aimed at for what is sent to the model; a picture that is larger is encoded more coarsely. */
  maxSentBytes: number;
  /** Drawings, screenshots and transparency are kept exactly up to this size; absent: no longer than a photograph's. */
  maxLosslessBytes?: number;
}

/** A small picture that is laid over a drawing, in a white border and with a badge in its lower right corner. */
export interface Inset {
  bytes: Uint8Array;
  sidePx: number;
  borderPx: number;
  /** An SVG of the program's own. */
  badge: string;
  leftPx: number;
  topPx: number;
}

/** The jobs of the decoder. Everything in it goes from one process to another. */
export type DecoderJob =
  | { type: "fit"; bytes: Uint8Array; mimeType: ImageMimeType | undefined; limits: PictureLimits }
  | { type: "measure"; bytes: Uint8Array }
  | { type: "sample"; bytes: Uint8Array; maxPixels: number; sidePx: number }
  /** `svg` is the program's own: a foreign one is never opened. */
  | { type: "draw"; svg: string; insets: Inset[] };

export interface DecoderResults {
  /** Without `bytes`, the picture passes as it is. */
  fit: { mimeType: ImageMimeType; bytes?: Uint8Array };
  /** In pixels, as the picture is drawn: cameras store a turned picture lying down and say so. */
  measure: { width: number; height: number };
  /** `pixels` are a square of `sidePx`: red, green, blue, opacity. The whole picture was decoded for it. */
  sample: { width: number; height: number; pixels: Uint8Array };
  /** A PNG. */
  draw: Uint8Array;
}

/**
 * `too-many-pixels`: more than `maxPixels`, of which the kind of the picture has a say. `undecodable`: damaged, or of
 * a kind that is not opened. `too-slow`: given up. `busy`: it never came to its turn. `failed`: the decoder itself
 * ended, most often for want of memory.
 */
export type DecoderProblem =
  | { kind: "too-many-pixels"; maxPixels: number }
  | { kind: "undecodable" | "too-slow" | "busy" | "failed" };

export type DecoderAnswer = { value: DecoderResults[DecoderJob["type"]] } | { problem: DecoderProblem };

/** A picture could not be dealt with. `problem` is what callers branch on; the message is for the log. */
export class DecoderError extends Error {
  override readonly name = "DecoderError";
  readonly problem: DecoderProblem;

  constructor(problem: DecoderProblem, options: { cause?: unknown } = {}) {
    super(`The picture is not decoded: ${problem.kind}.`, options);
    this.problem = problem;
  }
}
