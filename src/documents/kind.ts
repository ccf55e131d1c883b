export type DocumentKind = "pdf" | "packed" | "old-office" | "mail" | "markup" | "values" | "text";

const HEAD_BYTES = 2_048;
/** Matches a PDF's header at a line's start, or after a byte order mark or NUL. A text can mention "%PDF" elsewhere. */
const PDF = /(?:^|\0|ï»¿)%PDF-\d/m;
const PAGE = /^\s*(<!--[^]*?-->\s*)?<(!doctype html|html)[\s>]/i;

/** Detects a document's kind from its bytes. The file's name matters only for text, whose bytes don't show the kind. */
export function kindOf(bytes: Uint8Array, name: string): DocumentKind {
  const head = Buffer.from(bytes.subarray(0, HEAD_BYTES));
  if (PDF.test(head.toString("latin1"))) return "pdf";
  if (head.toString("latin1", 0, 4) === "PK\x03\x04") return "packed";
  if (head.toString("hex", 0, 8) === "d0cf11e0a1b11ae1") return "old-office";
  const extension = /\.(\w+)$/.exec(name.toLowerCase())?.[1] ?? "";
  const text = head.toString("latin1").replace(/^ï»¿/, "");
  if (extension === "eml" && /^[\w-]+:/m.test(text)) return "mail";
  if (/^(html?|xhtml)$/.test(extension) || PAGE.test(text)) return "markup";
  return extension === "csv" || extension === "tsv" ? "values" : "text";
}

export function charsetOf(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.subarray(0, HEAD_BYTES)).toString("latin1");
  return /<meta[^>]*\bcharset\s*=\s*["']?([\w-]+)/i.exec(head)?.[1];
}
