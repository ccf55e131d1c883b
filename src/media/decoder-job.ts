import type { ImageMimeType } from "./sniff.ts";

export interface PictureLimits {
  /** One frame can have at most this many decoded pixels. A small file can contain billions of them. */
  maxPixels: number;
  /** The limit for the longer side of the image that the model gets, in pixels. */
  maxSide: number;
  /** The intended size of the image that the model gets. A larger image is compressed more. */
  maxSentBytes: number;
  /**
   * Drawings, screenshots and transparent images up to this size stay lossless. Absent: the same limit as for photos.
   */
  maxLosslessBytes?: number;
}

/** A small image with a white border, to place on a drawing. */
export interface Inset {
  bytes: Uint8Array;
  sidePx: number;
  borderPx: number;
  leftPx: number;
  topPx: number;
}

/** The decoder's jobs. They must be serializable, because another process runs them. */
export type DecoderJob =
  | { type: "fit"; bytes: Uint8Array; mimeType: ImageMimeType | undefined; limits: PictureLimits }
  | { type: "measure"; bytes: Uint8Array }
  | { type: "sample"; bytes: Uint8Array; maxPixels: number; sidePx: number }
  /** Palaver itself makes the SVG. The decoder never opens an SVG from outside. */
  | { type: "draw"; svg: string; insets: Inset[] };

export interface DecoderResults {
  /** `bytes` are absent if the image can be used unchanged. */
  fit: { mimeType: ImageMimeType; bytes?: Uint8Array };
  /** The size after rotation, in pixels: cameras store a rotated photo sideways and note its orientation. */
  measure: { width: number; height: number };
  /** `pixels` is a square of `sidePx` with red, green, blue and alpha, from the fully decoded image. */
  sample: { width: number; height: number; pixels: Uint8Array };
  draw: Uint8Array;
}

/**
 * `too-many-pixels`: more than `maxPixels`, or too much memory for the file's type. `undecodable`: damaged or
 * unsupported. `too-slow`: timed out. `busy`: waited too long. `failed`: the decoder process died, usually because it
 * ran out of memory.
 */
export type DecoderProblem =
  | { kind: "too-many-pixels"; maxPixels: number }
  | { kind: "undecodable" | "too-slow" | "busy" | "failed" };

export type DecoderAnswer = { value: DecoderResults[DecoderJob["type"]] } | { problem: DecoderProblem };

/** Processing an image failed. Callers check `problem`; the message is for the log. */
export class DecoderError extends Error {
  override readonly name = "DecoderError";
  readonly problem: DecoderProblem;

  constructor(problem: DecoderProblem, options: { cause?: unknown } = {}) {
    super(`Could not decode the image: ${problem.kind}.`, options);
    this.problem = problem;
  }
}
