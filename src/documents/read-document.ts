import { fileURLToPath } from "node:url";
import { createJobProcess, type JobProcessOptions } from "../concurrency/job-process.ts";
import { type DocumentResult, UNKNOWN_KIND } from "./document.ts";
import { decodeUnicode, hasNul } from "./encoding.ts";
import { kindOf } from "./kind.ts";

const PROGRAM = fileURLToPath(new URL("./document-process.ts", import.meta.url));
/** Longest for one document; a PDF stops earlier of its own accord, with what was read by then. */
const JOB_MS = 40_000;
/** A plain text of this size is decoded in less time than it takes to send it to a process. */
const PLAIN_BYTES = 128 * 1024;
/** V8's heap limit. `memory-watch.ts` ends the process when its whole memory grows beyond that. */
const HEAP_MB = 384;

export interface DocumentJob {
  bytes: Uint8Array;
  name: string;
}

/** Resolves to the text, or to a problem. `owner` takes turns with others. Rejects only with the signal's reason. */
export type ReadDocument = (
  bytes: Uint8Array,
  name: string,
  owner: string,
  signal: AbortSignal,
) => Promise<DocumentResult>;

/** The one place where this process has documents read, so that the time and the memory for it are bounded. */
export const readDocument: ReadDocument = createReadDocument();

const PROBLEMS = {
  "too-slow": "takes too long to read; send the part that matters",
  busy: "waited too long for other documents that are being read; send it again in a minute",
  failed: "takes more memory to read than there is for one document; send the part that matters",
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

/** Reads a small plain text without a process; undefined for everything else. */
function readPlain(bytes: Uint8Array, name: string): DocumentResult | undefined {
  if (kindOf(bytes, name) !== "text") return undefined;
  if (hasNul(bytes)) return { problem: UNKNOWN_KIND };
  const text = bytes.byteLength <= PLAIN_BYTES ? decodeUnicode(bytes) : undefined;
  return text === undefined ? undefined : { text };
}
