/** The text of a document for the model, with tables and headings in Markdown. */
export interface DocumentText {
  text: string;
  /** The title of a web page. Untrusted text. */
  title?: string;
  /** Names what is missing: "only pages 1 to 500 of 2,000 were read". Absent if the text is complete. */
  leftOut?: string;
}

/** `problem` completes the sentence "it …" about the file. */
export type DocumentResult = DocumentText | { problem: string };

/** Reading a document failed. The message completes the sentence "it …" for people. */
export class DocumentError extends Error {
  override readonly name = "DocumentError";
}

/** Limits for one document, so that reading it takes only seconds and a few megabytes. */
export interface DocumentLimits {
  maxPages: number;
  /** The longest extracted text, in UTF-16 units. */
  maxChars: number;
  /** The contents of a packed document can have at most this many bytes. */
  maxUnpackedBytes: number;
  /** Reading a PDF starts no further page after this time. */
  pagesMs: number;
}

export const DOCUMENT_LIMITS: DocumentLimits = {
  maxPages: 500,
  maxChars: 1_000_000,
  maxUnpackedBytes: 64 * 1024 * 1024,
  pagesMs: 20_000,
};

export const UNKNOWN_KIND =
  "is in an unsupported format; send an image, a PDF, a Word or Excel document, a CSV, a web page, an email or plain text";
export const DAMAGED = "is damaged or incomplete; send it again";
export const PROTECTED = "is protected with a password; send it without one";
export const ONLY_BEGINNING = "only its beginning was read";

/** Formats a number with separators, for example 100,000. */
export function toCount(count: number): string {
  return count.toLocaleString("en");
}
