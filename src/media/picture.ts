import sharp, { type Metadata, type Sharp } from "sharp";
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

/** Why a picture cannot be shown to a model. */
export type PictureProblem = "too-many-pixels" | "undecodable";

export type FittedPicture = { mimeType: ImageMimeType; bytes: Uint8Array } | { problem: PictureProblem };

/** What models take as it is, and the name sharp has for it: the two have to agree on what the bytes are. */
const SENDABLE: ReadonlyMap<ImageMimeType, string> = new Map([
  ["image/png", "png"],
  ["image/jpeg", "jpeg"],
  ["image/webp", "webp"],
  ["image/gif", "gif"],
]);
/** Kinds that keep every pixel, and are used where that matters. */
const EXACT: ReadonlySet<string> = new Set(["png", "tiff"]);
/** Tried in turn until the picture is small enough; the last is taken as it comes. */
const JPEG_QUALITIES = [88, 70, 50] as const;
/** What a photograph costs. */
const MAX_LOSSLESS_BYTES = 1024 * 1024;
/** Decoding is done by then or given up; the pixels are bounded, so this is for formats that compute long for few of them. */
const DECODE_TIMEOUT_SECONDS = 20;

/**
 * Makes a picture fit for a model. A small still one passes byte for byte, once it has been decoded as a check: a
 * broken picture would have the gateway refuse this request and every later one of the conversation. Any other, also
 * one without a type, is encoded anew: upright, scaled down, its first frame, without metadata (a photograph says where
 * it was taken).
 */
export async function fitPicture(
  bytes: Uint8Array,
  mimeType: ImageMimeType | undefined,
  limits: PictureLimits,
): Promise<FittedPicture> {
  try {
    const { width, height, ...rest } = await sharp(bytes, { limitInputPixels: false }).metadata();
    if (width * height > limits.maxPixels) return { problem: "too-many-pixels" };
    const isSmall = Math.max(width, height) <= limits.maxSide && bytes.byteLength <= limits.maxSentBytes;
    if (isSmall && mimeType !== undefined && isPlain(rest, mimeType)) {
      await open(bytes, limits).resize(1, 1).raw().toBuffer();
      return { mimeType, bytes };
    }
    const picture = open(bytes, limits)
      .autoOrient()
      .resize(limits.maxSide, limits.maxSide, { fit: "inside", withoutEnlargement: true });
    return await encode(picture, rest.hasAlpha || EXACT.has(rest.format), limits);
  } catch {
    // sharp's message quotes its libraries; whether the file is broken or of an unknown kind cannot be told from it.
    return { problem: "undecodable" };
  }
}

function open(bytes: Uint8Array, { maxPixels }: PictureLimits): Sharp {
  return sharp(bytes, { limitInputPixels: maxPixels, failOn: "error" }).timeout({ seconds: DECODE_TIMEOUT_SECONDS });
}

/** One upright frame in colours every model knows, carrying nothing but the picture. */
function isPlain(metadata: Omit<Metadata, "width" | "height">, mimeType: ImageMimeType): boolean {
  const { format, pages = 1, space, exif, xmp, iptc, comments } = metadata;
  if (SENDABLE.get(mimeType) !== format || pages > 1) return false;
  if (exif !== undefined || xmp !== undefined || iptc !== undefined || comments !== undefined) return false;
  return space === "srgb" || space === "b-w";
}

async function encode(picture: Sharp, isDrawing: boolean, limits: PictureLimits): Promise<FittedPicture> {
  const { maxSentBytes, maxLosslessBytes = MAX_LOSSLESS_BYTES } = limits;
  if (isDrawing) {
    const png = await picture.clone().png().toBuffer();
    if (png.byteLength <= Math.min(maxLosslessBytes, maxSentBytes)) return { mimeType: "image/png", bytes: png };
  }
  let bytes: Uint8Array = new Uint8Array();
  for (const quality of JPEG_QUALITIES) {
    bytes = await picture.clone().flatten({ background: "white" }).jpeg({ quality }).toBuffer();
    if (bytes.byteLength <= maxSentBytes) break;
  }
  return { mimeType: "image/jpeg", bytes };
}
