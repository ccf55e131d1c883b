import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { createReadDocument } from "../../src/documents/read-document.ts";

const never = new AbortController().signal;
const folder = mkdtempSync(join(tmpdir(), "documents-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A reader whose process runs other code for a document. */
function startOther(code: string, options: { jobMs?: number; waitMs?: number } = {}) {
  const program = join(folder, `${crypto.randomUUID()}.mjs`);
  writeFileSync(program, code);
  const read = createReadDocument({ program, ...options });
  return (signal = never) => read(Buffer.from("%PDF-1.7"), "a.pdf", "ada", signal);
}

describe("readDocument", () => {
  test("reading a document stops at the timeout", async () => {
    const read = startOther("process.on('message', () => {});", { jobMs: 20 });
    expect(await read()).toEqual({ problem: "takes too long to read; send the relevant part" });
  });

  test("the reader reports a document as too large if its process runs out of memory", async () => {
    const read = startOther("process.on('message', () => process.abort());");
    expect(await read()).toEqual({
      problem: "needs too much memory to read; send the relevant part",
    });
  });

  test("the reader reports a document that waited too long for its turn", async () => {
    const read = startOther("process.on('message', () => {});", { waitMs: 20, jobMs: 500 });
    const [, second] = await Promise.all([read(), read()]);
    expect(second).toEqual({
      problem: "waited too long behind other documents; send it again in a minute",
    });
  });

  test("the reader needs no process for a short plain text, or for a file that is not text", async () => {
    const read = createReadDocument({ program: join(folder, "none.mjs") });
    expect(await read(Buffer.from("plain"), "a.md", "ada", never)).toEqual({ text: "plain" });
    expect(await read(Buffer.from("a\0b"), "a.md", "ada", never)).toEqual({
      problem: expect.stringContaining("in an unsupported format"),
    });
  });
});
