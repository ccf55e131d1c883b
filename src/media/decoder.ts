import { fileURLToPath } from "node:url";
import { createJobProcess, type JobProcessOptions } from "../concurrency/job-process.ts";
import { type DecoderAnswer, DecoderError, type DecoderJob, type DecoderResults } from "./decoder-job.ts";

const PROGRAM = fileURLToPath(new URL("./decoder-process.ts", import.meta.url));
/** The timeout of one job with all its steps. Most steps have shorter timeouts. */
const JOB_MS = 40_000;

/** Owners take turns; an owner is the person who waits for the job, or another key. */
export type Decode = <J extends DecoderJob>(
  job: J,
  owner: string,
  signal: AbortSignal,
) => Promise<DecoderResults[J["type"]]>;

/** Decodes all images of this process, so that their memory is limited together. */
export const decode: Decode = createDecoder();

/** Decodes one image at a time in another process. Rejects with a `DecoderError` or the signal's reason. */
export function createDecoder(options: Partial<JobProcessOptions> = {}): Decode {
  const ask = createJobProcess<DecoderJob, DecoderAnswer>({ program: PROGRAM, jobMs: JOB_MS, ...options });

  return async <J extends DecoderJob>(job: J, owner: string, signal: AbortSignal) => {
    const answer = await ask(job, owner, signal);
    if ("value" in answer) return answer.value as DecoderResults[J["type"]];
    throw new DecoderError(answer.problem, { cause: "cause" in answer ? answer.cause : undefined });
  };
}
