/** The text of a document, as a model reads it: tables and headings are Markdown. */
export interface DocumentText {
  text: string;
  /** Names the missing part: "only pages 1 to 500 of 2,000 were read". Absent when the text is complete. */
  leftOut?: string;
}

/** `problem` completes the sentence that begins with the file's name, "it …". */
export type DocumentResult = DocumentText | { problem: string };

/** A document cannot be read. The message is for people and completes the sentence "it …". */
export class DocumentError extends Error {
  override readonly name = "DocumentError";
}

/** Bounds of one document, so that it is read in seconds and held in a few megabytes. */
export interface DocumentLimits {
  maxPages: number;
  /** Longest text made of the document, in UTF-16 units. */
  maxChars: number;
  /** Bytes that the parts of a packed document may unpack to. */
  maxUnpackedBytes: number;
  /** After this no further page is begun. */
  pagesMs: number;
}

export const DOCUMENT_LIMITS: DocumentLimits = {
  maxPages: 500,
  maxChars: 1_000_000,
  maxUnpackedBytes: 64 * 1024 * 1024,
  pagesMs: 20_000,
};

export const UNKNOWN_KIND =
  "is of a kind that is not read here; send a picture, a PDF, a Word or Excel document, a CSV, a web page, a mail or plain text";
export const DAMAGED = "is damaged or incomplete; send it again";
export const PROTECTED = "is protected with a password; send it without one";
export const ONLY_BEGINNING = "only its beginning was read";

/** A number as people read it: 100,000. */
export function toCount(count: number): string {
  return count.toLocaleString("en");
}
