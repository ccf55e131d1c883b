import { fileURLToPath } from "node:url";
import { createJobProcess, type JobProcessOptions } from "../concurrency/job-process.ts";
import { type DocumentResult, UNKNOWN_KIND } from "./document.ts";
import { decodeUnicode, hasNul } from "./encoding.ts";
import { kindOf } from "./kind.ts";

const PROGRAM = fileURLToPath(new URL("./document-process.ts", import.meta.url));
/** The longest time for one document. Reading a PDF stops earlier and returns the pages that were read. */
const JOB_MS = 40_000;
/** Up to this size, decoding a plain text is faster than sending it to a process. */
const PLAIN_BYTES = 128 * 1024;
/** The limit of V8's heap. `memory-watch.ts` limits the memory of the whole process. */
const HEAP_MB = 384;

export interface DocumentJob {
  bytes: Uint8Array;
  name: string;
}

/** Resolves to the text or to a problem. Owners take turns. Rejects only with the signal's reason. */
export type ReadDocument = (
  bytes: Uint8Array,
  name: string,
  owner: string,
  signal: AbortSignal,
) => Promise<DocumentResult>;

/** Reads all documents of this process, so that their time and memory are limited together. */
export const readDocument: ReadDocument = createReadDocument();

const PROBLEMS = {
  "too-slow": "takes too long to read; send the relevant part",
  busy: "waited too long behind other documents; send it again in a minute",
  failed: "needs too much memory to read; send the relevant part",
} as const;

export function createReadDocument(options: Partial<JobProcessOptions> = {}): ReadDocument {
  const nodeOptions = [`--max-old-space-size=${HEAP_MB}`, "--disable-warning=ExperimentalWarning"];
  const ask = createJobProcess<DocumentJob, DocumentResult>({
    program: PROGRAM,
    nodeOptions,
    jobMs: JOB_MS,
    ...options,
  });

  return async (bytes, name, owner, signal) => {
    const known = readPlain(bytes, name);
    if (known !== undefined) return known;
    const answer = await ask({ bytes, name }, owner, signal);
    if ("text" in answer || typeof answer.problem === "string") return answer as DocumentResult;
    return { problem: PROBLEMS[answer.problem.kind] };
  };
}

/** Reads a small plain text without a process; undefined for other files. */
function readPlain(bytes: Uint8Array, name: string): DocumentResult | undefined {
  if (kindOf(bytes, name) !== "text") return undefined;
  if (hasNul(bytes)) return { problem: UNKNOWN_KIND };
  const text = bytes.byteLength <= PLAIN_BYTES ? decodeUnicode(bytes) : undefined;
  return text === undefined ? undefined : { text };
}
