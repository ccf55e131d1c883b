import { writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { BYTES_FD, type Packed, pack, unpack } from "./packed-bytes.ts";

/** Runs jobs for the parent process (see `createJobProcess`). `run` never rejects. */
export function serveJobs(run: (job: never) => Promise<object>): void {
  preferForKilling();
  const bytes = new Socket({ fd: BYTES_FD });
  const answer = async (given: Packed) => {
    const { message, parts } = pack(await run((await unpack(given, bytes)) as never));
    process.send?.(message);
    for (const part of parts) bytes.write(part);
  };
  process.on("message", (given) => void answer(given as Packed));
  // Kills this process, because a clean exit would wait for the running job.
  process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
  // In a terminal, Ctrl+C interrupts all processes, but the parent decides when this process ends.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => {});
}

/** Makes Linux kill this process first if memory runs out. */
function preferForKilling(): void {
  try {
    writeFileSync("/proc/self/oom_score_adj", "1000");
  } catch {
    // The system is not Linux, or does not permit this.
  }
}
