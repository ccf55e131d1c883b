import { fileTypeFromBuffer } from "file-type";

export type ImageMimeType = "image/png" | "image/jpeg" | "image/webp" | "image/gif" | "image/avif" | "image/heic";

export type SniffedType =
  | { kind: "image"; mimeType: ImageMimeType }
  | { kind: "document"; mimeType: "application/pdf" }
  /** `text` is decoded, without its byte order mark. */
  | { kind: "text"; mimeType: "text/plain"; text: string };

/** file-type's names for the kinds of pictures that are supported. An animated PNG is a PNG to every decoder. */
const IMAGE_TYPES: ReadonlyMap<string, ImageMimeType> = new Map([
  ["image/png", "image/png"],
  ["image/apng", "image/png"],
  ["image/jpeg", "image/jpeg"],
  ["image/webp", "image/webp"],
  ["image/gif", "image/gif"],
  ["image/avif", "image/avif"],
  ["image/heic", "image/heic"],
  ["image/heif", "image/heic"],
]);

/**
 * Finds out what a file is from its bytes alone; a name or a header may lie. Anything that decodes as UTF-8 without
 * NULs, or as UTF-16 behind a byte order mark, is text, also SVG and other markup. Resolves to undefined for
 * everything else, archives among it. Never rejects.
 */
export async function sniffType(bytes: Uint8Array): Promise<SniffedType | undefined> {
  const mime = await readMagic(bytes);
  const mimeType = IMAGE_TYPES.get(mime ?? "");
  if (mimeType !== undefined) return { kind: "image", mimeType };
  if (mime === "application/pdf") return { kind: "document", mimeType: "application/pdf" };

  const text = decodeText(bytes);
  return text === undefined ? undefined : { kind: "text", mimeType: "text/plain", text };
}

async function readMagic(bytes: Uint8Array): Promise<string | undefined> {
  try {
    return (await fileTypeFromBuffer(bytes))?.mime;
  } catch {
    // A header that breaks off makes the detector fail: not a file it knows, perhaps still text.
    return undefined;
  }
}

function decodeText(bytes: Uint8Array): string | undefined {
  const encoding = encodingOf(bytes);
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}

function encodingOf([first, second]: Uint8Array): "utf-8" | "utf-16le" | "utf-16be" {
  if (first === 0xff && second === 0xfe) return "utf-16le";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  return "utf-8";
}
