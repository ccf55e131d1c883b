import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { createJobProcess } from "../../src/concurrency/job-process.ts";

const { signal } = new AbortController();
const SERVE_JOBS = new URL("../../src/concurrency/serve-jobs.ts", import.meta.url).href;
const folder = mkdtempSync(join(tmpdir(), "job-process-"));
afterAll(() => rmSync(folder, { recursive: true }));

function start(code: string) {
  const program = join(folder, `${crypto.randomUUID()}.mjs`);
  writeFileSync(program, code);
  return createJobProcess<object, object>({ program, jobMs: 20_000 });
}

const startServing = (run: string) =>
  start(`import { serveJobs } from ${JSON.stringify(SERVE_JOBS)}; serveJobs(${run});`);

describe("a job for a separate process", () => {
  test("a job's bytes travel separately from its messages, wherever the job or its result contains bytes", async () => {
    const ask = startServing("async (job) => ({ ...job, seen: job.parts.map(({ bytes }) => bytes.length) })");
    const large = Buffer.alloc(17 * 1024 * 1024, "large");
    const job = {
      name: "job",
      absent: undefined,
      parts: [{ bytes: large }, { bytes: new Uint8Array() }, { bytes: Buffer.from("small") }],
    };
    for (let round = 0; round < 2; round++) {
      const answer = (await ask(job, "ada", signal)) as typeof job & { seen: number[] };
      expect(answer.seen).toEqual([large.length, 0, 5]);
      expect(answer.parts.map(({ bytes }) => Buffer.from(bytes).equals(large))).toEqual([true, false, false]);
      expect(String(answer.parts[2]?.bytes)).toBe("small");
      expect([answer.name, "absent" in answer]).toEqual(["job", true]);
    }
  });

  // Serializing a message copies it. For 16 MiB and more, this blocked the event loop.
  test("a job's message contains no bytes", async () => {
    const ask = start(`import { serialize } from "node:v8";
      process.on("message", (message) =>
        process.send({ value: { length: serialize(message).length }, lengths: [] }));`);
    const answer = await ask({ bytes: Buffer.alloc(1024 * 1024) }, "ada", signal);
    expect(answer).toEqual({ length: expect.any(Number) });
    expect("length" in answer && Number(answer.length)).toBeLessThan(200);
  });

  test("an aborted job leaves none of its bytes to the next job", async () => {
    const ask = startServing("async ({ bytes }) => ({ first: bytes[0] })");
    const leaving = new AbortController();
    const left = ask({ bytes: Buffer.alloc(17 * 1024 * 1024, 1) }, "ada", leaving.signal);
    setImmediate(() => leaving.abort(new Error("left")));
    await expect(left).rejects.toThrow("left");
    expect(await ask({ bytes: Uint8Array.of(2) }, "ada", signal)).toEqual({ first: 2 });
  });

  test("a job fails if its process ends while it reads the bytes", async () => {
    const ask = start("process.on('message', () => process.exit(1));");
    const answer = await ask({ bytes: Buffer.alloc(17 * 1024 * 1024) }, "ada", signal);
    expect(answer).toMatchObject({ problem: { kind: "failed" } });
  });
});
