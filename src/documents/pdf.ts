import { getDocumentProxy } from "unpdf";
import { DAMAGED, DocumentError, type DocumentLimits, type DocumentText, PROTECTED, toCount } from "./document.ts";

type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>;

/** Reads a PDF's text page by page. The number of each page precedes its text. */
export async function readPdf(
  bytes: Uint8Array,
  { maxPages, maxChars, pagesMs }: DocumentLimits,
): Promise<DocumentText> {
  const until = performance.now() + pagesMs;
  const pdf = await open(bytes);
  const pages: string[] = [];
  let chars = 0;
  let hasText = false;
  let damaged = 0;
  for (let number = 1; number <= pdf.numPages; number++) {
    if (number > maxPages || chars > maxChars || performance.now() > until) break;
    const text = await readPage(pdf, number);
    if (text === undefined) damaged++;
    hasText ||= text !== undefined && text.trim() !== "";
    const page = `[page ${number}]\n${text ?? "(damaged)"}`;
    chars += page.length;
    pages.push(page);
  }
  if (!hasText && damaged > 0) throw new DocumentError(DAMAGED);
  if (!hasText) {
    throw new DocumentError("contains only pages without text, probably scans; send the relevant pages as images");
  }
  const isWhole = pages.length === pdf.numPages && chars <= maxChars;
  const text = pages.join("\n\n");
  if (isWhole) return { text };
  return { text, leftOut: `only pages 1 to ${toCount(pages.length)} of ${toCount(pdf.numPages)} were read` };
}

async function open(bytes: Uint8Array): Promise<Pdf> {
  try {
    // Copies the bytes, because the library keeps them and does not accept a Buffer.
    return await getDocumentProxy(new Uint8Array(bytes), { useSystemFonts: false, verbosity: 0 });
  } catch (cause) {
    if ((cause as Error).name === "PasswordException") {
      throw new DocumentError(PROTECTED, { cause });
    }
    throw new DocumentError(DAMAGED, { cause });
  }
}

/** Undefined if the page is unreadable. */
async function readPage(pdf: Pdf, number: number): Promise<string | undefined> {
  try {
    const page = await pdf.getPage(number);
    const { items } = await page.getTextContent();
    page.cleanup();
    return items.map((item) => ("str" in item ? item.str + (item.hasEOL ? "\n" : "") : "")).join("");
  } catch {
    return undefined;
  }
}
