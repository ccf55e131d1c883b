// The child process that reads documents, one at a time (see read-document.ts).
import { Worker } from "node:worker_threads";
import { serveJobs } from "../concurrency/serve-jobs.ts";
import { DocumentError, type DocumentResult } from "./document.ts";
import { toText } from "./read.ts";
import type { DocumentJob } from "./read-document.ts";

new Worker(new URL("./memory-watch.ts", import.meta.url)).unref();
serveJobs(toResult);

async function toResult({ bytes, name }: DocumentJob): Promise<DocumentResult> {
  try {
    return await toText(bytes, name);
  } catch (error) {
    if (error instanceof DocumentError) return { problem: error.message };
    return { problem: "is damaged or in an unusual format; send it as PDF or plain text" };
  }
}
