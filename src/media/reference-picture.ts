import { decodeUnicode } from "../documents/encoding.ts";
import type { AttachmentRef } from "../port/events.ts";
import type { PictureLimits } from "./decoder-job.ts";
import { toShownSize } from "./file-problem.ts";
import { describePictureProblem, fitPicture } from "./picture.ts";
import { type ImageMimeType, readMimeType, toImageType } from "./sniff.ts";
import { type FileLimits, type OpenAttachment, useFile } from "./use-file.ts";

export type ReferenceLimits = PictureLimits & FileLimits;

export interface ReferencePicture {
  bytes: Uint8Array;
  /** Read from the bytes. */
  mimeType: ImageMimeType;
  /** The bytes are not those of the attachment. */
  isChanged: boolean;
  /** The type of the attachment's own bytes, when a gateway may take them too. */
  originalType: ImageMimeType | undefined;
}

/** `owner` as in `decode`. `problem` completes "FILE …". Rejects only with the signal's reason. */
export type ReadPicture = (
  ref: AttachmentRef,
  owner: string,
  signal: AbortSignal,
) => Promise<ReferencePicture | { problem: string }>;

/** The longest side is that of the largest picture a model draws; the bytes are what gateways take by link. */
const DEFAULT_LIMITS: ReferenceLimits = {
  maxFileBytes: 20 * 1024 * 1024,
  timeoutMs: 60_000,
  maxPixels: 50_000_000,
  maxSide: 4_096,
  maxSentBytes: 8 * 1024 * 1024,
  maxLosslessBytes: 8 * 1024 * 1024,
};

const NAMES: ReadonlyMap<string, string> = new Map([
  ["image/bmp", "a BMP picture"],
  ["image/x-icon", "an icon"],
  ["image/jxl", "a JPEG XL picture"],
  ["image/vnd.adobe.photoshop", "a Photoshop file"],
  ["application/pdf", "a PDF"],
]);

export function createReadPicture(open: OpenAttachment, limits: Partial<ReferenceLimits> = {}): ReadPicture {
  const bounds = { ...DEFAULT_LIMITS, ...limits };
  const tooLarge = `is larger than ${toShownSize(bounds.maxFileBytes)}; send a smaller version`;

  return (ref, owner, signal) => {
    const read = (bytes: Uint8Array) => toPicture(bytes, bounds, owner, signal);
    return useFile({ ...bounds, ref, open, owner, tooLarge }, read, signal);
  };
}

async function toPicture(
  bytes: Uint8Array,
  bounds: ReferenceLimits,
  owner: string,
  signal: AbortSignal,
): Promise<ReferencePicture | { problem: string }> {
  if (bytes.byteLength === 0) return { problem: "is empty" };
  const mime = await readMimeType(bytes);
  const originalType = toImageType(mime);
  if (originalType === undefined && mime !== "image/tiff") return { problem: describeKind(bytes, mime) };
  const fitted = await fitPicture(bytes, originalType, bounds, owner, signal);
  if (!("problem" in fitted)) return { ...fitted, originalType, isChanged: fitted.bytes !== bytes };
  // HEIC as telephones write it cannot be decoded here, but a gateway may take it.
  if (fitted.problem.kind === "undecodable" && originalType === "image/heic") {
    return { bytes, mimeType: originalType, originalType, isChanged: false };
  }
  return { problem: describePictureProblem(fitted.problem, bounds) };
}

function describeKind(bytes: Uint8Array, mime: string | undefined): string {
  const name = NAMES.get(mime ?? "");
  if (name !== undefined) return `is ${name}, a kind that cannot be read here; send it as PNG or JPEG`;
  const head = decodeUnicode(bytes)?.slice(0, 4_096);
  if (head === undefined) return "is no picture";
  // A drawing may name other files, here and elsewhere, that would be read along with it.
  if (/<svg[\s>]/i.test(head)) return "is an SVG drawing, which is not opened here; send it as PNG";
  if (/<(!doctype html|html|head|body|script)[\s>]/i.test(head)) return "is a web page and no picture";
  return "is text and no picture";
}
