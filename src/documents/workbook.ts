import readSheets, { type CellValue } from "read-excel-file/node";
import { checkArchive } from "./archive.ts";
import { DAMAGED, DocumentError, type DocumentLimits, type DocumentText } from "./document.ts";
import { describeSize, toMarkdownTable } from "./table.ts";

/** A sheet as the library returns it. The library's type wrongly says that a chart has data. */
interface Sheet {
  sheet: string;
  data?: ReadonlyArray<ReadonlyArray<CellValue | null>>;
}

/** Reads a workbook's sheets, except charts, as Markdown tables that share the remaining characters equally. */
export async function readWorkbook(
  bytes: Uint8Array,
  { maxChars, maxUnpackedBytes }: DocumentLimits,
): Promise<DocumentText> {
  checkArchive(bytes, maxUnpackedBytes);
  const all: Sheet[] = await readSheets(Buffer.from(bytes)).catch((cause: unknown) => {
    throw new DocumentError(`${DAMAGED}, or as CSV`, { cause });
  });
  const sheets = all.flatMap(({ sheet, data }) => (data === undefined ? [] : [{ sheet, data }]));
  const parts: string[] = [];
  const leftOut: string[] = [];
  let left = maxChars;
  for (const [index, { sheet, data }] of sheets.entries()) {
    const table = toMarkdownTable(toRows(data), Math.floor(left / (sheets.length - index)));
    left -= table.text.length;
    const note = table.leftOut === undefined ? "" : `\n[${table.leftOut}]`;
    parts.push(`## Sheet ${index + 1} of ${sheets.length}: "${sheet}", ${describeSize(table)}\n\n${table.text}${note}`);
    if (table.leftOut !== undefined) leftOut.push(`${table.leftOut} of its sheet "${sheet}"`);
  }
  const [first] = leftOut;
  return { text: parts.join("\n\n"), ...(first !== undefined && { leftOut: first }) };
}

function* toRows(data: ReadonlyArray<ReadonlyArray<CellValue | null>>): Generator<string[]> {
  for (const row of data) yield row.map(toText);
}

function toText(value: CellValue | null): string {
  if (value === null) return "";
  if (value instanceof Date) return toDay(value);
  // A spreadsheet shows at most 15 digits of a number.
  if (typeof value === "number") return String(Number(value.toPrecision(15)));
  return String(value);
}

function toDay(date: Date): string {
  if (Number.isNaN(date.getTime())) return "";
  return date
    .toISOString()
    .replace(/T00:00:00\.000Z$/, "")
    .replace(/\.000Z$/, "");
}
