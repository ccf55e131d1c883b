import { decode } from "./decoder.ts";
import { DecoderError, type DecoderProblem, type PictureLimits } from "./decoder-job.ts";
import type { ImageMimeType } from "./sniff.ts";

export type FittedPicture = { mimeType: ImageMimeType; bytes: Uint8Array } | { problem: DecoderProblem };

const SENTENCES: Readonly<Record<Exclude<DecoderProblem["kind"], "too-many-pixels">, string>> = {
  undecodable: "is damaged or incomplete; send it again, as PNG or JPEG",
  "too-slow": "takes too long to open; send a smaller version",
  busy: "waited too long behind other images; send it again in a minute",
  failed: "could not be opened; send a smaller version, as PNG or JPEG",
};

/**
 * Prepares an image for a model. A small still image stays unchanged, but is decoded as a check: if it were broken, the
 * gateway would reject this request and every later one in the conversation. Any other image is encoded again: upright,
 * scaled down, only the first frame, and without metadata, because a photo's metadata contains its location. `owner` is
 * the same as for `decode`. Rejects only with the signal's reason.
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

/** Returns words that complete the sentence "it …" about the file. */
export function describePictureProblem(problem: DecoderProblem, limits: PictureLimits): string {
  if (problem.kind !== "too-many-pixels") return SENTENCES[problem.kind];
  const most = `has more than ${Math.floor(problem.maxPixels / 1e6)} million pixels`;
  if (problem.maxPixels >= limits.maxPixels) return `${most}; send a smaller version`;
  return `${most}, too many for this file type; send a smaller version, or a plain JPEG`;
}
