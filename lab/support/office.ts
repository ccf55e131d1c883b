import { toZip } from "./zip.ts";

const XML = '<?xml version="1.0" encoding="UTF-8"?>';
const TYPES = "http://schemas.openxmlformats.org/package/2006/content-types";
const RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships";
const OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
const SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const ABOUT_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml";
const ABOUT_BOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml";

export const toParagraph = (text: string, style?: string) =>
  `<w:p>${style === undefined ? "" : `<w:pPr><w:pStyle w:val="${style}"/></w:pPr>`}<w:r><w:t>${text}</w:t></w:r></w:p>`;

export const toWordTable = (rows: readonly string[][]) =>
  `<w:tbl>${rows.map((row) => `<w:tr>${row.map((cell) => `<w:tc>${toParagraph(cell)}</w:tc>`).join("")}</w:tr>`).join("")}</w:tbl>`;

/** Returns the files of a Word document with this body. `doctype` precedes the document. */
export function toWordParts(body: string, doctype = ""): Record<string, string> {
  return {
    ...packageParts("/word/document.xml", ABOUT_WORD),
    "word/document.xml": `${XML}${doctype}<w:document xmlns:w="${WORD}"><w:body>${body}</w:body></w:document>`,
  };
}

export type Cell = string | number | boolean | Date | undefined;

/** Returns the files of a workbook. Each text is stored once, in a list that all cells share. */
export function toBookParts(sheets: Readonly<Record<string, readonly Cell[][]>>, doctype = ""): Record<string, string> {
  const names = Object.keys(sheets);
  const texts: string[] = [];
  const numbers = new Map<string, number>();
  const numberOf = (text: string) => {
    const known = numbers.get(text) ?? texts.push(text) - 1;
    numbers.set(text, known);
    return known;
  };
  const pages = Object.values(sheets).map((rows) => rows.map((row, index) => toRow(row, index + 1, numberOf)).join(""));
  const relations = [
    ...names.map((_, index) => ["worksheet", `worksheets/sheet${index + 1}.xml`]),
    ["styles", "styles.xml"],
    ["sharedStrings", "sharedStrings.xml"],
  ].map(([kind, target], index) => `<Relationship Id="r${index + 1}" Type="${OFFICE}/${kind}" Target="${target}"/>`);
  const list = names.map((name, index) => `<sheet name="${name}" sheetId="${index + 1}" r:id="r${index + 1}"/>`);
  return {
    ...packageParts("/xl/workbook.xml", ABOUT_BOOK),
    "xl/workbook.xml": `${XML}<workbook xmlns="${SHEET}" xmlns:r="${OFFICE}"><sheets>${list.join("")}</sheets></workbook>`,
    "xl/_rels/workbook.xml.rels": `${XML}<Relationships xmlns="${RELATIONS}">${relations.join("")}</Relationships>`,
    "xl/styles.xml": `${XML}<styleSheet xmlns="${SHEET}"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>`,
    "xl/sharedStrings.xml": `${XML}${doctype}<sst xmlns="${SHEET}">${texts.map((text) => `<si><t>${text}</t></si>`).join("")}</sst>`,
    ...Object.fromEntries(
      pages.map((rows, index) => [
        `xl/worksheets/sheet${index + 1}.xml`,
        `${XML}<worksheet xmlns="${SHEET}"><sheetData>${rows}</sheetData></worksheet>`,
      ]),
    ),
  };
}

function toRow(row: readonly Cell[], number: number, numberOf: (text: string) => number): string {
  const cells = row.map((cell, index) => {
    const place = `r="${String.fromCodePoint(65 + index)}${number}"`;
    if (cell === undefined) return "";
    if (typeof cell === "string") return `<c ${place} t="s"><v>${numberOf(cell)}</v></c>`;
    if (typeof cell === "boolean") return `<c ${place} t="b"><v>${cell ? 1 : 0}</v></c>`;
    // Dates are days since 1899-12-30.
    if (cell instanceof Date) return `<c ${place} s="1"><v>${cell.getTime() / 86_400_000 + 25_569}</v></c>`;
    return `<c ${place}><v>${cell}</v></c>`;
  });
  return `<row r="${number}">${cells.join("")}</row>`;
}

function packageParts(main: string, about: string): Record<string, string> {
  return {
    "[Content_Types].xml": `${XML}<Types xmlns="${TYPES}"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="${main}" ContentType="${about}"/></Types>`,
    "_rels/.rels": `${XML}<Relationships xmlns="${RELATIONS}"><Relationship Id="r1" Type="${OFFICE}/officeDocument" Target="${main.slice(1)}"/></Relationships>`,
  };
}

export const toDocx = (body: string) => toZip(toWordParts(body));
export const toXlsx = (sheets: Readonly<Record<string, readonly Cell[][]>>) => toZip(toBookParts(sheets));
