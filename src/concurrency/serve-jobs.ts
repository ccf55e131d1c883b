import { writeFileSync } from "node:fs";

/** Does the jobs of the process that started this one, see `createJobProcess`. `run` never rejects. */
export function serveJobs(run: (job: never) => Promise<object>): void {
  preferForKilling();
  const answer = async (job: never) => process.send?.(await run(job));
  process.on("message", (job) => void answer(job as never));
  // A job at work could hold an orderly exit up for as long as it takes.
  process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
  // In a terminal everybody is interrupted; the one that started this decides when it ends.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => {});
}

/** Makes Linux end this process before any other when memory runs out. */
function preferForKilling(): void {
  try {
    writeFileSync("/proc/self/oom_score_adj", "1000");
  } catch {
    // Not on Linux, or not allowed.
  }
}
