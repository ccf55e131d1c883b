import { isUnicode } from "../documents/encoding.ts";

export type ImageMimeType = "image/png" | "image/jpeg" | "image/webp" | "image/gif" | "image/avif" | "image/heic";

export type SniffedType =
  | { kind: "image"; mimeType: ImageMimeType }
  | { kind: "document"; mimeType: "application/pdf" }
  | { kind: "text"; mimeType: "text/plain" };

/** file-type's names for the supported image formats. Decoders treat an animated PNG as a PNG. */
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
 * Detects a file's type from its first bytes. Text is UTF-8 without NULs or UTF-16 with a byte order mark, and includes
 * SVG. Undefined for other files, including archives. Never rejects.
 */
export async function sniffType(bytes: Uint8Array): Promise<SniffedType | undefined> {
  const mime = await readMimeType(bytes);
  const mimeType = toImageType(mime);
  if (mimeType !== undefined) return { kind: "image", mimeType };
  if (mime === "application/pdf") return { kind: "document", mimeType: "application/pdf" };

  return isUnicode(bytes) ? { kind: "text", mimeType: "text/plain" } : undefined;
}

/** Detects the type of an image; undefined for other files. Never rejects. */
export async function sniffImage(bytes: Uint8Array): Promise<ImageMimeType | undefined> {
  return toImageType(await readMimeType(bytes));
}

/** Converts a name from `readMimeType` to an image type; undefined for other types. */
export function toImageType(mime: string | undefined): ImageMimeType | undefined {
  return IMAGE_TYPES.get(mime ?? "");
}

/** Returns file-type's name for bytes with a signature; undefined for other bytes and for text. Never rejects. */
export async function readMimeType(bytes: Uint8Array): Promise<string | undefined> {
  // Loaded with the first file, because the library has forty modules.
  const { fileTypeFromBuffer } = await import("file-type");
  try {
    return (await fileTypeFromBuffer(bytes))?.mime;
  } catch {
    // The detector throws if the header is truncated. Such a file can still be text.
    return undefined;
  }
}
