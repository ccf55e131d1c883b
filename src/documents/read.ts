import { truncate } from "../text/truncate.ts";
import { listArchive } from "./archive.ts";
import { readCsv } from "./csv.ts";
import {
  DAMAGED,
  DOCUMENT_LIMITS,
  DocumentError,
  type DocumentLimits,
  type DocumentText,
  ONLY_BEGINNING,
  PROTECTED,
  UNKNOWN_KIND,
} from "./document.ts";
import { decodeText } from "./encoding.ts";
import { charsetOf, kindOf } from "./kind.ts";
import { readMail } from "./mail.ts";
import { readMarkup } from "./markup.ts";
import { readPdf } from "./pdf.ts";
import { readWord } from "./word.ts";
import { readWorkbook } from "./workbook.ts";

const OLD_OFFICE = "is in an old Office format; save it as .docx, .xlsx or PDF";
/** Word Online adds a number to the file's name. */
const WORD_PART = /^word\/document\d*\.xml$/;
const OUTLOOK_MAIL = "is an email in Outlook's own format; save it as .eml or PDF";

/** Extracts a document's text. Rejects with a `DocumentError`. Only `readDocument` limits time and memory. */
export async function toText(
  bytes: Uint8Array,
  name: string,
  limits: DocumentLimits = DOCUMENT_LIMITS,
): Promise<DocumentText> {
  const { text, ...more } = await readKind(bytes, name, limits);
  if (text.trim() === "") throw new DocumentError("contains no readable text");
  if (text.length <= limits.maxChars) return { text, ...more };
  return { leftOut: ONLY_BEGINNING, ...more, text: truncate(text, limits.maxChars, "").toWellFormed() };
}

async function readKind(bytes: Uint8Array, name: string, limits: DocumentLimits): Promise<DocumentText> {
  const { maxChars } = limits;
  const kind = kindOf(bytes, name);
  switch (kind) {
    case "pdf":
      return await readPdf(bytes, limits);
    case "packed":
      return await readPacked(bytes, limits);
    case "old-office":
      throw new DocumentError(describeContainer(bytes));
    case "mail":
      return await readMail(bytes, maxChars);
    case "markup":
      return readMarkup(decode(bytes, charsetOf(bytes)), maxChars);
    case "values":
      return readCsv(decode(bytes), maxChars);
    case "text":
      return { text: decode(bytes) };
  }
  return kind satisfies never;
}

async function readPacked(bytes: Uint8Array, limits: DocumentLimits): Promise<DocumentText> {
  const names = listArchive(bytes);
  if (names === undefined) throw new DocumentError(DAMAGED);
  if (names.some((name) => WORD_PART.test(name))) return await readWord(bytes, limits);
  if (names.includes("xl/workbook.xml")) return await readWorkbook(bytes, limits);
  if (names.some((name) => name.startsWith("ppt/"))) throw new DocumentError("is a presentation; send it as PDF");
  if (names.includes("mimetype")) {
    throw new DocumentError("is a document in an unsupported format; send it as PDF");
  }
  throw new DocumentError("is an archive; send the files in it one by one");
}

/** Encrypted Office documents and Outlook's emails have the same container as old Office formats. */
function describeContainer(bytes: Uint8Array): string {
  const has = (name: string) => Buffer.from(bytes).includes(Buffer.from(name, "utf16le"));
  if (has("EncryptedPackage")) return PROTECTED;
  return has("__substg1.0_") ? OUTLOOK_MAIL : OLD_OFFICE;
}

function decode(bytes: Uint8Array, charset?: string): string {
  const text = decodeText(bytes, charset);
  if (text === undefined) throw new DocumentError(UNKNOWN_KIND);
  return text;
}
