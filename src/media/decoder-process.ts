// The child process that decodes images, one at a time (see decoder.ts).
import { serveJobs } from "../concurrency/serve-jobs.ts";
import { type DecoderAnswer, DecoderError, type DecoderJob } from "./decoder-job.ts";
import { runJob } from "./decoding.ts";

serveJobs(toAnswer);

async function toAnswer(job: DecoderJob): Promise<DecoderAnswer> {
  try {
    return { value: await runJob(job) };
  } catch (error) {
    if (error instanceof DecoderError) return { problem: error.problem };
    const isLate = error instanceof Error && /timeout: \d+% complete/.test(error.message);
    return { problem: { kind: isLate ? "too-slow" : "undecodable" } };
  }
}
