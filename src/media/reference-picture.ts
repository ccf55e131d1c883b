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
  /** The type detected from the bytes. */
  mimeType: ImageMimeType;
  /** True if the bytes differ from the attachment's bytes. */
  isChanged: boolean;
  /** The type of the unchanged attachment, if a gateway might accept that type. */
  originalType: ImageMimeType | undefined;
}

/** `owner` is as in `decode`. `problem` completes "FILE …". Rejects only with the signal's reason. */
export type ReadPicture = (
  ref: AttachmentRef,
  owner: string,
  signal: AbortSignal,
) => Promise<ReferencePicture | { problem: string }>;

/** `maxSide` is the side of the largest image that a model creates. The byte limits are those of gateways for links. */
const DEFAULT_LIMITS: ReferenceLimits = {
  maxFileBytes: 20 * 1024 * 1024,
  timeoutMs: 60_000,
  maxPixels: 50_000_000,
  maxSide: 4_096,
  maxSentBytes: 8 * 1024 * 1024,
  maxLosslessBytes: 8 * 1024 * 1024,
};

const NAMES: ReadonlyMap<string, string> = new Map([
  ["image/bmp", "a BMP image"],
  ["image/x-icon", "an icon"],
  ["image/jxl", "a JPEG XL image"],
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
  // Palaver cannot decode HEIC from phones, but the gateway might accept it.
  if (fitted.problem.kind === "undecodable" && originalType === "image/heic") {
    return { bytes, mimeType: originalType, originalType, isChanged: false };
  }
  return { problem: describePictureProblem(fitted.problem, bounds) };
}

function describeKind(bytes: Uint8Array, mime: string | undefined): string {
  const name = NAMES.get(mime ?? "");
  if (name !== undefined) return `is ${name}, which is not supported; send it as PNG or JPEG`;
  const head = decodeUnicode(bytes)?.slice(0, 4_096);
  if (head === undefined) return "is not an image";
  // Do not open an SVG: it can refer to other files, which would be read too.
  if (/<svg[\s>]/i.test(head)) return "is an SVG drawing, which is not supported; send it as PNG";
  if (/<(!doctype html|html|head|body|script)[\s>]/i.test(head)) return "is a web page, not an image";
  return "is text, not an image";
}
