import type { ImageMimeType } from "./sniff.ts";

export interface PictureLimits {
  /** Maximum number of decoded pixels in one frame. A small file can contain billions of them. */
  maxPixels: number;
  /** Limit for the longer side of the image that is sent to the model, in pixels. */
  maxSide: number;
  /** Target size for the image that is sent to the model. A larger image is compressed more. */
  maxSentBytes: number;
  /**
   * Drawings, screenshots and transparent images up to this size stay lossless. Absent: the limit is the same as for
   * photos.
   */
  maxLosslessBytes?: number;
}

/** A small image placed on a drawing, with a white border. */
export interface Inset {
  bytes: Uint8Array;
  sidePx: number;
  borderPx: number;
  leftPx: number;
  topPx: number;
}

/** The jobs of the decoder. They must be serializable, because another process runs them. */
export type DecoderJob =
  | { type: "fit"; bytes: Uint8Array; mimeType: ImageMimeType | undefined; limits: PictureLimits }
  | { type: "measure"; bytes: Uint8Array }
  | { type: "sample"; bytes: Uint8Array; maxPixels: number; sidePx: number }
  /** Palaver creates `svg`. The decoder never opens an SVG from outside. */
  | { type: "draw"; svg: string; insets: Inset[] };

export interface DecoderResults {
  /** If `bytes` is absent, the image can be used unchanged. */
  fit: { mimeType: ImageMimeType; bytes?: Uint8Array };
  /** Pixels after rotation. Cameras store a rotated photo sideways and note its orientation. */
  measure: { width: number; height: number };
  /** `pixels` is a square of `sidePx` with red, green, blue and alpha, from the fully decoded image. */
  sample: { width: number; height: number; pixels: Uint8Array };
  draw: Uint8Array;
}

/**
 * `too-many-pixels`: more than `maxPixels`, which depends on the file type. `undecodable`: damaged or unsupported.
 * `too-slow`: timed out. `busy`: waited too long. `failed`: the decoder process died, usually because it was out of
 * memory.
 */
export type DecoderProblem =
  | { kind: "too-many-pixels"; maxPixels: number }
  | { kind: "undecodable" | "too-slow" | "busy" | "failed" };

export type DecoderAnswer = { value: DecoderResults[DecoderJob["type"]] } | { problem: DecoderProblem };

/** An image could not be processed. Callers check `problem`; the message is for the log. */
export class DecoderError extends Error {
  override readonly name = "DecoderError";
  readonly problem: DecoderProblem;

  constructor(problem: DecoderProblem, options: { cause?: unknown } = {}) {
    super(`Could not decode the image: ${problem.kind}.`, options);
    this.problem = problem;
  }
}
