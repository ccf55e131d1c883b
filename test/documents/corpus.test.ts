import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type CorpusFile, GOOD_FILES, HOSTILE_FILES, LONG_FILES } from "../../lab/support/file-corpus.ts";
import { kindOf } from "../../src/documents/kind.ts";
import { createReadDocument } from "../../src/documents/read-document.ts";
import { toContentParts } from "../../src/media/content-parts.ts";
import { createFiles } from "../../src/media/files.ts";

const never = new AbortController().signal;
const MAX_TOKENS = 12_000;
/** Smaller texts are decoded in this process, because sending them to another process takes longer. */
const PLAIN_BYTES = 128 * 1024;

const folder = mkdtempSync(join(tmpdir(), "corpus-"));
afterAll(() => rmSync(folder, { recursive: true }));
const program = join(folder, "counting.mjs");
writeFileSync(
  program,
  `import { serveJobs } from ${JSON.stringify(new URL("../../src/concurrency/serve-jobs.ts", import.meta.url).href)};
  serveJobs(async ({ bytes }) => ({ text: "read elsewhere: " + bytes.length }));`,
);
const readElsewhere = createReadDocument({ program });

async function read({ name, make }: CorpusFile) {
  const bytes = make();
  const isShortText = kindOf(bytes, name) === "text" && bytes.byteLength <= PLAIN_BYTES;
  // The document process reads the files that could block an event loop, so its result must be a text.
  if (!isShortText) {
    expect(await readElsewhere(bytes, name, "ada", never)).toEqual({ text: `read elsewhere: ${bytes.length}` });
  }
  const open = async function* () {
    yield bytes;
  };
  const files = createFiles(async () => open());
  const ref = { platform: "test", id: name, name, sizeBytes: bytes.byteLength };
  const { parts, notices, tokens } = await toContentParts(await files.load([ref], "ada", never), MAX_TOKENS);
  const [part] = parts;
  if (part?.type !== "text") throw new Error(`${name} is not text`);
  return { notices, tokens, text: part.text.replace(/^<file [^>]+>\n|\n<\/file [^>]+>$/g, "") };
}

describe("ordinary documents", () => {
  const texts: Record<string, string> = {
    "report.pdf": "[page 1]\nAnnual report\nIt went well.\n\n[page 2]\nOutlook",
    "letter.docx": "# Minutes\n\nWe met on Monday.\n\n| Who | What |\n| --- | --- |\n| Ada | draft |",
    "budget.xlsx": [
      '## Sheet 1 of 2: "Costs", 3 rows, 4 columns',
      "| Item | Price | Paid | Day |\n| --- | --- | --- | --- |\n| Chairs | 120.5 | true | 2026-03-01 |\n| Desk | 0.3 | false |  |",
      '## Sheet 2 of 2: "Notes", 1 row, 1 column',
      "| A pipe \\| in a cell |\n| --- |",
    ].join("\n\n"),
    "sales.csv": '3 rows, 2 columns\n\n| month | sum |\n| --- | --- |\n| May | 1;5 |\n| June | a "b" |',
    "umsatz.csv": "2 rows, 2 columns\n\n| Straße | Maß |\n| --- | --- |\n| München | 3 |",
    "export-16.csv": "2 rows, 2 columns\n\n| name | city |\n| --- | --- |\n| Åsa | 東京 |",
    "uriage.csv": "2 rows, 2 columns\n\n| 月 | 金額 |\n| --- | --- |\n| 五月 | 3 |",
    "memo.txt": "日本語です。",
    "hours.html":
      "Opening hours\n\n# Opening hours\n\nFrom nine to five, see the map (https://example.com/map).\n\n- Monday\n- Tuesday",
    "greetings.eml":
      "From: Ada Lovelace <ada@example.com>\nTo: <bob@example.com>\nSubject: Grüße\nAttached: chart.png\n\nDear Bob,\n\n| Day | Hours |\n| --- | --- |\n| Monday | 8 |",
    "main.ts": "export const answer = 42;\n",
    "data.json": '{"a":[1,2]}',
    "server.log": "[31mfailed[0m\n",
  };

  for (const file of GOOD_FILES) {
    test(`the reader turns ${file.name}, ${file.about}, into text with its structure`, async () => {
      const { text, notices } = await read(file);
      expect(text.replace(/\n\[\w{16}: .*\]$/, "")).toBe(texts[file.name]);
      expect(notices).toEqual(file.name === "greetings.eml" ? ["`greetings.eml`: its attachments were not read."] : []);
    });
  }
});

describe("unusual files", () => {
  /** The note below the text. Empty if the reader read the whole file. */
  const notes: Record<string, string> = {
    "thick.pdf": "`thick.pdf`: only pages 1 to 500 of 100,000 were read.",
    "trace.log": "`trace.log` is long, so I only read the beginning.",
    "export.csv": "`export.csv` is long, so I only read the beginning.",
    "wide.csv": "`wide.csv`: only the first 100 of 500 columns were read.",
    "stock.xlsx": "`stock.xlsx` is long, so I only read the beginning.",
    "million.xlsx":
      "I couldn't read `million.xlsx`: it unpacks to more than 64 MiB; send the relevant part, or export it as PDF or CSV.",
    "locked.pdf": "I couldn't read `locked.pdf`: it is protected with a password; send it without one.",
    "torn.pdf": "I couldn't read `torn.pdf`: it is damaged or incomplete; send it again.",
    "scan.pdf":
      "I couldn't read `scan.pdf`: it contains only pages without text, probably scans; send the relevant pages as images.",
    "bomb.pdf": "I couldn't read `bomb.pdf`: it needs too much memory to read; send the relevant part.",
    "bomb.docx":
      "I couldn't read `bomb.docx`: it unpacks to more than 64 MiB; send the relevant part, or export it as PDF or CSV.",
    "bomb.xlsx":
      "I couldn't read `bomb.xlsx`: it unpacks to more than 64 MiB; send the relevant part, or export it as PDF or CSV.",
    "laughs.docx": "I couldn't read `laughs.docx`: it is damaged or incomplete; send it again, or as PDF.",
    "laughs.xlsx": "",
    "laughs.html": "",
    "deep.docx": "I couldn't read `deep.docx`: it is damaged or incomplete; send it again, or as PDF.",
    "deep.html": "I couldn't read `deep.html`: it contains no readable text.",
    "locked.docx": "I couldn't read `locked.docx`: it is protected with a password; send it without one.",
    "old.doc": "I couldn't read `old.doc`: it is in an old Office format; save it as .docx, .xlsx or PDF.",
    "invite.msg": "I couldn't read `invite.msg`: it is an email in Outlook's own format; save it as .eml or PDF.",
    "torn.docx": "I couldn't read `torn.docx`: it is damaged or incomplete; send it again.",
    "locked.xlsx": "I couldn't read `locked.xlsx`: it is protected with a password; send it without one.",
    "slides.pptx": "I couldn't read `slides.pptx`: it is a presentation; send it as PDF.",
    "bundle.zip": "I couldn't read `bundle.zip`: it is an archive; send the files in it one by one.",
    "backup.tar.gz":
      "I couldn't read `backup.tar.gz`: it is in an unsupported format; send an image, a PDF, a Word or Excel document, a CSV, a web page, an email or plain text.",
    "photo.png": "",
    "paper.pdf": "",
    "setup.exe":
      "I couldn't read `setup.exe`: it is in an unsupported format; send an image, a PDF, a Word or Excel document, a CSV, a web page, an email or plain text.",
    "blank.docx": "I couldn't read `blank.docx`: it contains no readable text.",
    "nothing.txt": "I couldn't read `nothing.txt`: it is empty.",
    "nothing.pdf": "I couldn't read `nothing.pdf`: it is empty.",
  };

  for (const file of [...LONG_FILES, ...HOSTILE_FILES]) {
    test(`the reader reads or explains ${file.name}, ${file.about}`, { timeout: 60_000 }, async () => {
      const { notices, tokens } = await read(file);
      expect(notices.join(" ")).toBe(notes[file.name]);
      expect(tokens).toBeLessThanOrEqual(MAX_TOKENS);
    });
  }
});
