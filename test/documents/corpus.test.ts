import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { kindOf } from "../../src/documents/kind.ts";
import { createReadDocument } from "../../src/documents/read-document.ts";
import { toContentParts } from "../../src/media/content-parts.ts";
import { createFiles } from "../../src/media/files.ts";
import { type CorpusFile, GOOD_FILES, HOSTILE_FILES, LONG_FILES } from "../support/file-corpus.ts";

const never = new AbortController().signal;
const MAX_TOKENS = 12_000;
/** Decoded where it is: that takes less time than to send it away. */
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
  // Whatever holds an event loop for long is read by the process for documents, and this one gets a text from it.
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

const page = readFileSync(new URL("../../docs/files.md", import.meta.url), "utf8");
const [, rows = ""] = /\| the file \|.*\n\|---.*\n((?:\|.*\n)+)/.exec(page) ?? [];
/** What stands under the answer, by what the file is. */
const table = new Map([...rows.matchAll(/^\| (.+?) \| (.+) \|$/gm)].map(([, file, told]) => [file, told]));

describe("documents as people have them", () => {
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
    test(`${file.name}, ${file.about}, is text with its structure`, async () => {
      const { text, notices } = await read(file);
      expect(text.replace(/\n\[\w{16}: .*\]$/, "")).toBe(texts[file.name]);
      expect(notices).toEqual(
        file.name === "greetings.eml" ? ["Of `greetings.eml` what is attached to it was not read."] : [],
      );
    });
  }
});

describe("the table of docs/files.md", () => {
  test("has the unusual files of the corpus and no others", () => {
    expect([...table.keys()]).toEqual([...LONG_FILES, ...HOSTILE_FILES].map(({ about }) => about));
  });

  for (const file of [...LONG_FILES, ...HOSTILE_FILES]) {
    test(`says what comes of ${file.name}, ${file.about}`, { timeout: 60_000 }, async () => {
      const { notices, tokens } = await read(file);
      expect(table.get(file.about)).toBe(notices.join(" ") || "it is read");
      expect(tokens).toBeLessThanOrEqual(MAX_TOKENS);
    });
  }
});
