import mammoth from "mammoth";
import { checkArchive } from "./archive.ts";
import { DAMAGED, DocumentError, type DocumentLimits, type DocumentText } from "./document.ts";
import { readMarkup } from "./markup.ts";

/** Reads the text of a Word document with its headings, lists, links and tables. */
export async function readWord(
  bytes: Uint8Array,
  { maxChars, maxUnpackedBytes }: DocumentLimits,
): Promise<DocumentText> {
  checkArchive(bytes, maxUnpackedBytes);
  const convertImage = mammoth.images.imgElement(async () => ({ src: "" }));
  try {
    const { value } = await mammoth.convertToHtml({ buffer: Buffer.from(bytes) }, { convertImage });
    return readMarkup(value, maxChars);
  } catch (cause) {
    throw new DocumentError(`${DAMAGED}, or as PDF`, { cause });
  }
}
