import { fileURLToPath } from "node:url";
import { createJobProcess } from "../concurrency/job-process.ts";
import type { PolicySettings } from "../config/policy/policy-file.ts";

const PROGRAM = fileURLToPath(new URL("./policy-process.ts", import.meta.url));
const JOB_MS = 30_000;
/** The process exits after it was idle for this long, because the file rarely changes twice in a row. */
const IDLE_MS = 1_000;

export interface PolicyJob {
  path: string;
}

const ask = createJobProcess<PolicyJob, PolicySettings>({ program: PROGRAM, jobMs: JOB_MS, idleMs: IDLE_MS });

/**
 * Reads the policy file in a separate process, because parsing a long file would block the event loop. Rejects if the
 * process fails, or with the signal's reason.
 */
export async function readPolicyApart(path: string, signal: AbortSignal): Promise<PolicySettings> {
  const answer = await ask({ path }, "policy", signal);
  if ("problem" in answer) throw new Error(`The policy file was not read: ${answer.problem.kind}.`, { cause: answer });
  return answer;
}
