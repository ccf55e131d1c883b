import { decode } from "./decoder.ts";
import { DecoderError, type DecoderProblem, type PictureLimits } from "./decoder-job.ts";
import type { ImageMimeType } from "./sniff.ts";

export type FittedPicture = { mimeType: ImageMimeType; bytes: Uint8Array } | { problem: DecoderProblem };

const SENTENCES: Readonly<Record<Exclude<DecoderProblem["kind"], "too-many-pixels">, string>> = {
  undecodable: "is damaged or incomplete; send it again, as PNG or JPEG",
  "too-slow": "takes too long to open; send a smaller version",
  busy: "waited too long for other pictures that are being opened; send it again in a minute",
  failed: "could not be opened here; send a smaller version, as PNG or JPEG",
};

/**
 * Makes a picture fit for a model. A small still one passes byte for byte, once it has been decoded as a check: a
 * broken picture would have the gateway refuse this request and every later one of the conversation. Any other, also
 * one without a type, is encoded anew: upright, scaled down, its first frame, without metadata (a photograph says where
 * it was taken). `owner` as in `decode`. Rejects only with the signal's reason.
 */
export async function fitPicture(
  bytes: Uint8Array,
  mimeType: ImageMimeType | undefined,
  limits: PictureLimits,
  owner: string,
  signal: AbortSignal,
): Promise<FittedPicture> {
  try {
    return { bytes, ...(await decode({ type: "fit", bytes, mimeType, limits }, owner, signal)) };
  } catch (error) {
    if (error instanceof DecoderError) return { problem: error.problem };
    throw error;
  }
}

/** Completes the sentence that begins with the file's name, "it …". */
export function describePictureProblem(problem: DecoderProblem, limits: PictureLimits): string {
  if (problem.kind !== "too-many-pixels") return SENTENCES[problem.kind];
  const most = `has more than ${Math.floor(problem.maxPixels / 1e6)} million pixels`;
  if (problem.maxPixels >= limits.maxPixels) return `${most}; send a smaller version`;
  return `${most}, too many for a file of its kind; send a smaller version, or a plain JPEG`;
}
