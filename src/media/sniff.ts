import { isUnicode } from "../documents/encoding.ts";

export type ImageMimeType = "image/png" | "image/jpeg" | "image/webp" | "image/gif" | "image/avif" | "image/heic";

export type SniffedType =
  | { kind: "image"; mimeType: ImageMimeType }
  | { kind: "document"; mimeType: "application/pdf" }
  | { kind: "text"; mimeType: "text/plain" };

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
 * Sniffs a file's type from its beginning. UTF-8 without NULs, and UTF-16 after a byte order mark, are text, SVG
 * included. Undefined for anything else, archives too. Never rejects.
 */
export async function sniffType(bytes: Uint8Array): Promise<SniffedType | undefined> {
  const mime = await readMimeType(bytes);
  const mimeType = toImageType(mime);
  if (mimeType !== undefined) return { kind: "image", mimeType };
  if (mime === "application/pdf") return { kind: "document", mimeType: "application/pdf" };

  return isUnicode(bytes) ? { kind: "text", mimeType: "text/plain" } : undefined;
}

/** The type of a picture; undefined for everything else. Never rejects. */
export async function sniffImage(bytes: Uint8Array): Promise<ImageMimeType | undefined> {
  return toImageType(await readMimeType(bytes));
}

/** The type of a picture by a name of `readMimeType`; undefined for everything else. */
export function toImageType(mime: string | undefined): ImageMimeType | undefined {
  return IMAGE_TYPES.get(mime ?? "");
}

/** The type of bytes with a signature, as file-type names it; undefined for all others, and text. Never rejects. */
export async function readMimeType(bytes: Uint8Array): Promise<string | undefined> {
  // Its forty modules are loaded with the first file.
  const { fileTypeFromBuffer } = await import("file-type");
  try {
    return (await fileTypeFromBuffer(bytes))?.mime;
  } catch {
    // A header that breaks off makes the detector fail: not a file it knows, perhaps still text.
    return undefined;
  }
}
