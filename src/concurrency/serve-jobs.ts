import { writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { BYTES_FD, type Packed, pack, unpack } from "./packed-bytes.ts";

/** Does the jobs of the process that started this one, see `createJobProcess`. `run` never rejects. */
export function serveJobs(run: (job: never) => Promise<object>): void {
  preferForKilling();
  const bytes = new Socket({ fd: BYTES_FD });
  const answer = async (given: Packed) => {
    const { message, parts } = pack(await run((await unpack(given, bytes)) as never));
    process.send?.(message);
    for (const part of parts) bytes.write(part);
  };
  process.on("message", (given) => void answer(given as Packed));
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
