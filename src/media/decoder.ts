import { fileURLToPath } from "node:url";
import { createJobProcess, type JobProcessOptions } from "../concurrency/job-process.ts";
import { type DecoderAnswer, DecoderError, type DecoderJob, type DecoderResults } from "./decoder-job.ts";

const PROGRAM = fileURLToPath(new URL("./decoder-process.ts", import.meta.url));
/** Decoding takes several steps, most of which have a limit of their own. */
const JOB_MS = 40_000;

/** `owner` is the person for whom it is done, or another word for who has to wait; owners take turns. */
export type Decode = <J extends DecoderJob>(
  job: J,
  owner: string,
  signal: AbortSignal,
) => Promise<DecoderResults[J["type"]]>;

/** The one place where this process has pictures decoded, so that the memory for it is bounded. */
export const decode: Decode = createDecoder();

/** Decodes one picture at a time in another process. Rejects with a `DecoderError` or the signal's reason. */
export function createDecoder(options: Partial<JobProcessOptions> = {}): Decode {
  const ask = createJobProcess<DecoderJob, DecoderAnswer>({ program: PROGRAM, jobMs: JOB_MS, ...options });

  return async <J extends DecoderJob>(job: J, owner: string, signal: AbortSignal) => {
    const answer = await ask(job, owner, signal);
    if ("value" in answer) return answer.value as DecoderResults[J["type"]];
    throw new DecoderError(answer.problem, { cause: "cause" in answer ? answer.cause : undefined });
  };
}
