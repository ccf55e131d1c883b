import sharp, { type Metadata, type OverlayOptions, type Sharp } from "sharp";
import { DecoderError, type DecoderJob, type DecoderResults, type Inset, type PictureLimits } from "./decoder-job.ts";
import type { ImageMimeType } from "./sniff.ts";

// The only formats that the decoder opens. For example, it opens no SVG, because an SVG can refer to other files.
const KINDS = ["Jpeg", "Png", "Webp", "Nsgif", "Heif", "Tiff"];
const SVG = { operation: ["VipsForeignLoadSvg"] };
sharp.block({ operation: ["VipsForeignLoad"] });
sharp.unblock({ operation: KINDS.map((kind) => `VipsForeignLoad${kind}`) });
// Each image is decoded once, so threads and cached results would only use memory.
sharp.cache(false);
sharp.concurrency(1);

/** The memory limit for decoding one image. An image of 4,096 × 4,096 pixels fits in every format. */
const MAX_DECODED_BYTES = 320 * 1024 * 1024;
/** The timeout of decoding. The number of pixels is limited, so only formats that are slow per pixel reach it. */
const DECODE_TIMEOUT_SECONDS = 20;

/**
 * The types that models accept unchanged, with sharp's name for each. Our detection and sharp must agree on the type.
 */
const SENDABLE: ReadonlyMap<ImageMimeType, string> = new Map([
  ["image/png", "png"],
  ["image/jpeg", "jpeg"],
  ["image/webp", "webp"],
  ["image/gif", "gif"],
]);
/** Lossless formats, for images in which every pixel matters. */
const EXACT: ReadonlySet<string> = new Set(["png", "tiff"]);
/** JPEG qualities, tried in order until the image fits. The last result is kept even if it's still too large. */
const JPEG_QUALITIES = [88, 70, 50] as const;
/** A lossless image larger than this is encoded as a photo instead, because it compresses no better than one. */
const MAX_LOSSLESS_BYTES = 1024 * 1024;

/** Runs one job. Rejects with a `DecoderError`, or with an error of sharp whose message quotes sharp's libraries. */
export async function runJob(job: DecoderJob): Promise<DecoderResults[DecoderJob["type"]]> {
  if (job.type === "fit") return await fit(job.bytes, job.mimeType, job.limits);
  if (job.type === "measure") return await measure(job.bytes);
  if (job.type === "sample") return await sample(job.bytes, job.maxPixels, job.sidePx);
  return await draw(job.svg, job.insets);
}

async function fit(
  bytes: Uint8Array,
  mimeType: ImageMimeType | undefined,
  limits: PictureLimits,
): Promise<DecoderResults["fit"]> {
  const head = await readHead(bytes, limits.maxPixels);
  const isSmall = Math.max(head.width, head.height) <= limits.maxSide && bytes.byteLength <= limits.maxSentBytes;
  if (isSmall && mimeType !== undefined && isPlain(head, mimeType)) {
    await open(bytes).resize(1, 1).raw().toBuffer();
    return { mimeType };
  }
  const picture = open(bytes)
    .autoOrient()
    .resize(limits.maxSide, limits.maxSide, { fit: "inside", withoutEnlargement: true });
  return await encode(picture, head.hasAlpha || EXACT.has(head.format), limits);
}

/** True for one upright frame without metadata, in a color space that every model knows. */
function isPlain(head: Metadata, mimeType: ImageMimeType): boolean {
  const { format, pages = 1, space, exif, xmp, iptc, comments } = head;
  if (SENDABLE.get(mimeType) !== format || pages > 1) return false;
  if (exif !== undefined || xmp !== undefined || iptc !== undefined || comments !== undefined) return false;
  return space === "srgb" || space === "b-w";
}

async function encode(picture: Sharp, isDrawing: boolean, limits: PictureLimits): Promise<DecoderResults["fit"]> {
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

/** Reads only the header and decodes no pixels. */
async function measure(bytes: Uint8Array): Promise<DecoderResults["measure"]> {
  const { width, height, orientation = 1 } = await sharp(bytes, { limitInputPixels: false }).metadata();
  return orientation >= 5 ? { width: height, height: width } : { width, height };
}

async function sample(bytes: Uint8Array, maxPixels: number, sidePx: number): Promise<DecoderResults["sample"]> {
  const { width, height } = await readHead(bytes, maxPixels);
  const small = open(bytes).resize(sidePx, sidePx, { fit: "fill", kernel: "nearest" }).toColourspace("srgb");
  return { width, height, pixels: await small.ensureAlpha().raw().toBuffer() };
}

async function draw(svg: string, insets: readonly Inset[]): Promise<Uint8Array> {
  const overlays: OverlayOptions[] = [];
  for (const inset of insets) {
    overlays.push({ input: await frame(inset), left: inset.leftPx, top: inset.topPx });
  }
  // Jobs run one at a time, so no image from outside is opened while SVG is allowed.
  sharp.unblock(SVG);
  try {
    const drawing = sharp(Buffer.from(svg)).composite(overlays);
    return await drawing.flatten().removeAlpha().png({ compressionLevel: 6 }).toBuffer();
  } finally {
    sharp.block(SVG);
  }
}

async function frame({ bytes, sidePx, borderPx }: Inset): Promise<Buffer> {
  await readHead(bytes, Number.POSITIVE_INFINITY);
  const innerPx = sidePx - 2 * borderPx;
  return await open(bytes)
    .resize(innerPx, innerPx, { fit: "cover" })
    .flatten({ background: "#ffffff" })
    .extend({ top: borderPx, bottom: borderPx, left: borderPx, right: borderPx, background: "#ffffff" })
    .png()
    .toBuffer();
}

function open(bytes: Uint8Array): Sharp {
  // No limit here, because `readHead` has already checked the size with a limit for this format.
  return sharp(bytes, { limitInputPixels: false, failOn: "error" }).timeout({ seconds: DECODE_TIMEOUT_SECONDS });
}

/** Rejects with a `DecoderError` if the pixels would need too much memory. */
async function readHead(bytes: Uint8Array, maxPixels: number): Promise<Metadata> {
  const head = await sharp(bytes, { limitInputPixels: false }).metadata();
  // Phone cameras use HEVC in HEIC files. An HEVC decoder cannot be redistributed freely, so sharp has none.
  if (head.format === "heif" && head.compression !== "av1") throw new DecoderError({ kind: "undecodable" });
  const most = Math.min(maxPixels, Math.floor(MAX_DECODED_BYTES / toBytesPerPixel(head)));
  if (head.width * head.height > most) throw new DecoderError({ kind: "too-many-pixels", maxPixels: most });
  return head;
}

const DEPTH_BYTES: ReadonlyMap<string, number> = new Map([
  ["uchar", 1],
  ["char", 1],
  ["ushort", 2],
  ["short", 2],
  ["uint", 4],
  ["int", 4],
  ["float", 4],
]);
/** The size of the largest type of number in a TIFF. */
const MAX_DEPTH_BYTES = 16;

/** Returns the bytes per pixel that decoding needs, measured with sharp 0.35.5 as the growth of the process. */
function toBytesPerPixel({
  format,
  channels,
  depth,
  isProgressive,
  chromaSubsampling,
  bitsPerSample,
}: Metadata): number {
  const whole = channels * (DEPTH_BYTES.get(depth) ?? MAX_DEPTH_BYTES);
  // A JPEG is decoded row by row in little memory, unless the file stores each row in several passes.
  if (format === "jpeg" && isProgressive) return chromaSubsampling === "4:2:0" ? 3 : 2 * channels;
  if (format === "jpeg" || (format === "png" && !isProgressive)) return 1;
  if (format === "gif") return 5;
  if (format === "webp") return 4;
  if (format === "heif") return (bitsPerSample ?? 8) > 8 ? 36 : 18;
  // A single strip of a TIFF can contain the whole image.
  return whole;
}
