// The process that decodes pictures, one at a time, for the one that started it: see decoder.ts.
import { writeFileSync } from "node:fs";
import { type DecoderAnswer, DecoderError, type DecoderJob } from "./decoder-job.ts";
import { runJob } from "./decoding.ts";

preferForKilling();
process.on("message", (job: DecoderJob) => void answer(job));
// A decoder at work could hold an orderly exit up for as long as it takes.
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
// In a terminal everybody is interrupted; the one that started this decides when it ends.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => {});

async function answer(job: DecoderJob): Promise<void> {
  process.send?.(await toAnswer(job));
}

async function toAnswer(job: DecoderJob): Promise<DecoderAnswer> {
  try {
    return { value: await runJob(job) };
  } catch (error) {
    if (error instanceof DecoderError) return { problem: error.problem };
    const isLate = error instanceof Error && /timeout: \d+% complete/.test(error.message);
    return { problem: { kind: isLate ? "too-slow" : "undecodable" } };
  }
}

/** When memory runs out, Linux ends this process before any other. */
function preferForKilling(): void {
  try {
    writeFileSync("/proc/self/oom_score_adj", "1000");
  } catch {
    // Not on Linux, or not allowed.
  }
}
