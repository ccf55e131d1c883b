/** Returns the content of a page with these lines. */
export const toPage = (...lines: string[]) =>
  `BT /F1 12 Tf 50 700 Td 14 TL ${lines.map((line) => `(${line}) Tj T*`).join(" ")} ET`;

export interface PdfOptions {
  /** The filter of the pages' contents. The contents must already be compressed. */
  filter?: string;
  /** More entries for the trailer. */
  trailer?: string;
  /** Maximum number of pages under one tree node. */
  width?: number;
}

export function toPdf(pages: ReadonlyArray<string | Uint8Array>, options: PdfOptions = {}): Buffer {
  const { filter = "", trailer = "", width = 400 } = options;
  const objects: Uint8Array[] = [];
  const add = (text: string, stream?: Uint8Array) => {
    const body = stream === undefined ? [] : [Buffer.from("\nstream\n"), stream, Buffer.from("\nendstream")];
    return objects.push(Buffer.concat([Buffer.from(text, "latin1"), ...body]));
  };
  add("<< /Type /Catalog /Pages 2 0 R >>");
  add("");
  add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
  // Pages with the same content share one object.
  const contents = new Map<string | Uint8Array, number>();
  const addContent = (page: string | Uint8Array) => {
    const content = Buffer.from(page);
    const number = contents.get(page) ?? add(`<< /Length ${content.byteLength} ${filter} >>`, content);
    contents.set(page, number);
    return number;
  };
  const kids: string[] = [];
  let count = 0;
  for (let from = 0; from < pages.length; from += width) {
    const some = pages.slice(from, from + width);
    const node = add("");
    const leaves = some.map((page) => add(`<< /Type /Page /Parent ${node} 0 R /Contents ${addContent(page)} 0 R >>`));
    objects[node - 1] = Buffer.from(
      `<< /Type /Pages /Parent 2 0 R /Count ${leaves.length} /Kids [${leaves.map((leaf) => `${leaf} 0 R`).join(" ")}] >>`,
    );
    kids.push(`${node} 0 R`);
    count += leaves.length;
  }
  const shared = "/MediaBox [0 0 600 800] /Resources << /Font << /F1 3 0 R >> >>";
  objects[1] = Buffer.from(`<< /Type /Pages /Count ${count} /Kids [${kids.join(" ")}] ${shared} >>`);
  const parts: Uint8Array[] = [Buffer.from("%PDF-1.7\n")];
  let at = 9;
  const places = objects.map((object, index) => {
    const head = Buffer.from(`${index + 1} 0 obj\n`);
    parts.push(head, object, Buffer.from("\nendobj\n"));
    const place = at;
    at += head.byteLength + object.byteLength + 8;
    return `${String(place).padStart(10, "0")} 00000 n \n`;
  });
  const size = objects.length + 1;
  const table = `xref\n0 ${size}\n0000000000 65535 f \n${places.join("")}`;
  parts.push(
    Buffer.from(`${table}trailer\n<< /Size ${size} /Root 1 0 R ${trailer} >>\nstartxref\n${at}\n%%EOF`, "latin1"),
  );
  return Buffer.concat(parts);
}
