import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { createReadDocument } from "../../src/documents/read-document.ts";

const never = new AbortController().signal;
const folder = mkdtempSync(join(tmpdir(), "documents-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A reader whose process does something else with a document. */
function startOther(code: string, options: { jobMs?: number; waitMs?: number } = {}) {
  const program = join(folder, `${crypto.randomUUID()}.mjs`);
  writeFileSync(program, code);
  const read = createReadDocument({ program, ...options });
  return (signal = never) => read(Buffer.from("%PDF-1.7"), "a.pdf", "ada", signal);
}

describe("readDocument", () => {
  test("gives up a document that takes too long", async () => {
    const read = startOther("process.on('message', () => {});", { jobMs: 20 });
    expect(await read()).toEqual({ problem: "takes too long to read; send the part that matters" });
  });

  test("says that a document took too much memory when its process ended over it", async () => {
    const read = startOther("process.on('message', () => process.abort());");
    expect(await read()).toEqual({
      problem: "takes more memory to read than there is for one document; send the part that matters",
    });
  });

  test("says that a document never came to its turn", async () => {
    const read = startOther("process.on('message', () => {});", { waitMs: 20, jobMs: 500 });
    const [, second] = await Promise.all([read(), read()]);
    expect(second).toEqual({
      problem: "waited too long for other documents that are being read; send it again in a minute",
    });
  });

  test("ends in the middle of a document when nobody wants it any more", async () => {
    const controller = new AbortController();
    const reading = startOther("process.on('message', () => {});")(controller.signal);
    controller.abort("stopped");
    await expect(reading).rejects.toBe("stopped");
  });

  test("needs no process for a short plain text, nor for what is no text at all", async () => {
    const read = createReadDocument({ program: join(folder, "none.mjs") });
    expect(await read(Buffer.from("plain"), "a.md", "ada", never)).toEqual({ text: "plain" });
    expect(await read(Buffer.from("a\0b"), "a.md", "ada", never)).toEqual({
      problem: expect.stringContaining("not read here"),
    });
  });
});
