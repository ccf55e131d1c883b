import sharp, { type Metadata, type OverlayOptions, type Sharp } from "sharp";
import { DecoderError, type DecoderJob, type DecoderResults, type Inset, type PictureLimits } from "./decoder-job.ts";
import type { ImageMimeType } from "./sniff.ts";

// Nothing but these kinds is opened, whatever a file says it is: an SVG, for one, may name other files.
const KINDS = ["Jpeg", "Png", "Webp", "Nsgif", "Heif", "Tiff"];
const SVG = { operation: ["VipsForeignLoadSvg"] };
sharp.block({ operation: ["VipsForeignLoad"] });
sharp.unblock({ operation: KINDS.map((kind) => `VipsForeignLoad${kind}`) });
// Every picture is seen once; threads and results kept for later only take memory.
sharp.cache(false);
sharp.concurrency(1);

/** Most memory that decoding one picture may take. A square of 4,096 pixels passes in every kind. */
const MAX_DECODED_BYTES = 320 * 1024 * 1024;
/** Decoding is done by then or given up; the pixels are bounded, so this is for formats that compute long for few of them. */
const DECODE_TIMEOUT_SECONDS = 20;

/** The types that models take as they are, and the name sharp has for it: the two have to agree on what the bytes are. */
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
/** Pictures that compress no better than a photograph are not kept exactly. */
const MAX_LOSSLESS_BYTES = 1024 * 1024;

/** Does one job. Rejects with a `DecoderError`, and with errors of sharp, whose messages quote its libraries. */
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

/** One upright frame in colours every model knows, carrying nothing but the picture. */
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

/** Reads the head alone: no pixel is decoded. */
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
  return await withSvg(() =>
    sharp(Buffer.from(svg)).composite(overlays).flatten().removeAlpha().png({ compressionLevel: 6 }).toBuffer(),
  );
}

async function frame({ bytes, sidePx, borderPx, badge }: Inset): Promise<Buffer> {
  await readHead(bytes, Number.POSITIVE_INFINITY);
  const innerPx = sidePx - 2 * borderPx;
  const framed = await open(bytes)
    .resize(innerPx, innerPx, { fit: "cover" })
    .flatten({ background: "#ffffff" })
    .extend({ top: borderPx, bottom: borderPx, left: borderPx, right: borderPx, background: "#ffffff" })
    .png()
    .toBuffer();
  return await withSvg(() =>
    sharp(framed)
      .composite([{ input: Buffer.from(badge), gravity: "southeast" }])
      .png()
      .toBuffer(),
  );
}

/** Jobs come one at a time, so no foreign picture is opened meanwhile. */
async function withSvg<T>(task: () => Promise<T>): Promise<T> {
  sharp.unblock(SVG);
  try {
    return await task();
  } finally {
    sharp.block(SVG);
  }
}

function open(bytes: Uint8Array): Sharp {
  // The head was measured before, with a limit of its kind.
  return sharp(bytes, { limitInputPixels: false, failOn: "error" }).timeout({ seconds: DECODE_TIMEOUT_SECONDS });
}

/** Rejects with a `DecoderError` when the pixels would take more memory than there is for them. */
async function readHead(bytes: Uint8Array, maxPixels: number): Promise<Metadata> {
  const head = await sharp(bytes, { limitInputPixels: false }).metadata();
  // The decoder for what telephones put into HEIC is not free to give away, so it is not there.
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
/** Size of the largest number that a TIFF holds. */
const MAX_DEPTH_BYTES = 16;

/** Bytes that decoding takes for each pixel, measured with sharp 0.35.5 as the growth of a process over pictures of 17 to 49 million pixels. */
function toBytesPerPixel({
  format,
  channels,
  depth,
  isProgressive,
  chromaSubsampling,
  bitsPerSample,
}: Metadata): number {
  const whole = channels * (DEPTH_BYTES.get(depth) ?? MAX_DEPTH_BYTES);
  // Rows come one after another, at a fraction of their size, unless each comes several times.
  if (format === "jpeg" && isProgressive) return chromaSubsampling === "4:2:0" ? 3 : 2 * channels;
  if (format === "jpeg" || (format === "png" && !isProgressive)) return 1;
  if (format === "gif") return 5;
  if (format === "webp") return 4;
  if (format === "heif") return (bitsPerSample ?? 8) > 8 ? 36 : 18;
  // One strip of a TIFF may be the whole picture.
  return whole;
}
