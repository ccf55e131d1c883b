import { fileTypeFromBuffer } from "file-type";
import { decode } from "../media/decoder.ts";
import type { SandboxMessage } from "./chat-request.ts";
import { findMainColor } from "./colors.ts";
import { type ApiError, toInvalidRequest } from "./errors.ts";
import type { Exchange } from "./exchange.ts";
import { fetchRemoteFile, MAX_FILE_BYTES, RemoteFileError } from "./remote-file.ts";
import { imageUrls } from "./tokens.ts";

/** A conversation can have at most this many images, because the sandbox fetches each one. */
const MAX_PICTURES = 50;
const MAX_PIXELS = 50_000_000;
/** The side of the square sample from which an image's colours are read. */
const SAMPLE_PX = 48;
const TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"];

export interface Picture {
  bytes: Buffer;
  /** The type that the bytes show. */
  mimeType: string;
  widthPx: number;
  heightPx: number;
  /** A sample of the pixels: red, green, blue, opacity. */
  sample: Uint8Array;
}

/** Loads all images, and describes those in the last user message. Throws a 400 that names the part. */
export async function describePictures(
  messages: readonly SandboxMessage[],
  exchange: Exchange,
): Promise<string | undefined> {
  requireFew(messages);
  const latest = messages.findLastIndex(({ role }) => role === "user");
  const seen: Picture[] = [];
  for (const [messageIndex, { content }] of messages.entries()) {
    if (typeof content === "string") continue;
    for (const [partIndex, part] of (content ?? []).entries()) {
      if (part.type !== "image_url") continue;
      const param = `messages[${messageIndex}].content[${partIndex}].image_url.url`;
      const picture = await loadPicture(part.image_url.url, param, exchange);
      if (messageIndex === latest) seen.push(picture);
    }
  }
  return seen.length === 0 ? undefined : describe(seen);
}

function requireFew(messages: readonly SandboxMessage[]): void {
  const count = messages.reduce((sum, message) => sum + imageUrls(message).length, 0);
  if (count <= MAX_PICTURES) return;
  const rule = `messages show ${count} pictures; at most ${MAX_PICTURES} are taken.`;
  throw toInvalidRequest(rule, "array_above_max_length", "messages");
}

function describe(pictures: Picture[]): string {
  const lines = pictures.map(({ sample, mimeType, widthPx, heightPx }) => {
    const format = mimeType.replace("image/", "").toUpperCase();
    return `${format}, ${widthPx} × ${heightPx} pixels, mostly ${findMainColor(sample)}`;
  });
  if (lines.length === 1) return `I see one picture: ${lines[0]}.`;
  return `I see ${lines.length} pictures:\n\n${lines.map((line, index) => `${index + 1}. ${line}`).join("\n")}`;
}

/** Loads an image from a data URL or the public network. Throws a 400 that names `param`. */
async function loadPicture(url: string, param: string, { context, signal }: Exchange): Promise<Picture> {
  const data = /^data:([^;,]*)(;base64)?,(.*)$/s.exec(url);
  if (data === null)
    return await readPicture(await fetchFile(url, param, context.trustedFileOrigins, signal), undefined, param, signal);
  const [, declared = "", encoding, text = ""] = data;
  if (encoding === undefined)
    throw toPictureError("must be base64: a data URL of the form data:image/png;base64,…", param);
  return await readPicture(decodeBase64(text, param), declared, param, signal);
}

/** Fetches a public URL. Throws a 400 that names `param`. */
export async function fetchFile(
  url: string,
  param: string,
  trusted: readonly string[],
  signal: AbortSignal,
): Promise<Buffer> {
  try {
    return await fetchRemoteFile(url, trusted, signal);
  } catch (error) {
    if (!(error instanceof RemoteFileError)) throw error;
    throw toInvalidRequest(`The file of ${param} ${error.message}`, "file_not_reachable", param);
  }
}

export function decodeBase64(text: string, param: string): Buffer {
  if (text === "" || text.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) {
    throw toPictureError("is not valid base64.", param);
  }
  return Buffer.from(text, "base64");
}

/** Checks that an image can be decoded, and that its bytes have a known type: the declared one, if any. */
export async function readPicture(
  bytes: Buffer,
  declared: string | undefined,
  param: string,
  signal: AbortSignal,
): Promise<Picture> {
  if (bytes.length > MAX_FILE_BYTES) throw toPictureError(`is larger than ${MAX_FILE_BYTES} bytes.`, param);
  const mimeType = (await fileTypeFromBuffer(bytes))?.mime ?? "unknown";
  if (!TYPES.includes(mimeType))
    throw toPictureError(`is of type ${mimeType}; it must be one of ${TYPES.join(", ")}.`, param);
  if (declared !== undefined && declared !== mimeType) {
    throw toInvalidRequest(
      `${param} is declared as ${JSON.stringify(declared)}, but its bytes are ${mimeType}.`,
      "mime_type_mismatch",
      param,
    );
  }
  try {
    // Decode the whole image, because the rest can be damaged even if its head is valid.
    const job = { type: "sample", bytes, maxPixels: MAX_PIXELS, sidePx: SAMPLE_PX } as const;
    const { width, height, pixels } = await decode(job, "sandbox", signal);
    return { bytes, mimeType, widthPx: width, heightPx: height, sample: pixels };
  } catch {
    signal.throwIfAborted();
    throw toPictureError("cannot be read: it is damaged or has too many pixels.", param);
  }
}

function toPictureError(rule: string, param: string): ApiError {
  return toInvalidRequest(`${param} ${rule}`, "invalid_image", param);
}
