import type { Logger } from "pino";
import type { ActionEvent, Adapter, InboundEvent } from "../adapter.ts";
import { callPlatform, isRefusal } from "../platform-call.ts";
import { mayPress } from "../running-turn.ts";
import type { JobRuns } from "./job-run.ts";
import type { JobStore } from "./job-store.ts";
import type { Remember } from "./memory.ts";
import { TOO_OLD } from "./orders.ts";
import { readPictureId } from "./picture-id.ts";
import type { PictureJob } from "./picture-job.ts";

const NOT_YOURS = "Only the person who asked for this picture, or a moderator, can do that.";

/** Makes a job known as one that runs, for as long as the work on it takes. */
export type WhileRunning = <T>(job: PictureJob, work: () => Promise<T>) => Promise<T>;

export interface PressesDeps {
  jobs: Pick<JobStore, "save">;
  /** The job that runs, else the one that is stored. Rejects when the store does not answer. */
  find(id: string): Promise<PictureJob | undefined>;
  whileRunning: WhileRunning;
  runs: Pick<JobRuns, "run">;
  remember: Remember;
  adapterOf(platform: string): Adapter;
  log: Logger;
}

/** The buttons that belong to whoever asked for the picture. Each resolves to a sentence when nothing is done. */
export interface Presses {
  /** Draws the parts of a job that failed; pressed again while it is at work on that, it does nothing more. */
  retry(event: ActionEvent, signal: AbortSignal): Promise<string | undefined>;
  remove(event: ActionEvent): Promise<string | undefined>;
  /** To be told of every event when it is accepted. */
  notice(event: InboundEvent): void;
}

export function createPresses({ jobs, find, whileRunning, runs, remember, adapterOf, log }: PressesDeps): Presses {
  /** Jobs that a Retry is at work on, and keys of those that were pressed meanwhile. */
  const retrying = new Set<string>();
  const repeated = new Set<string>();

  async function findOwn({ turnId, author }: ActionEvent): Promise<{ job: PictureJob; part: number } | string> {
    const id = readPictureId(turnId);
    const job = id && (await find(id.jobId));
    if (id === undefined || job === undefined) return TOO_OLD;
    return mayPress(author, job) ? { job, part: id.part } : NOT_YOURS;
  }

  async function drawFailed(job: PictureJob, signal: AbortSignal): Promise<void> {
    const failed = job.parts.some(({ state }) => state === "failed");
    // Taken up after a crash, they are pending again already.
    if (!failed && job.isOver) return;
    if (job.isOver) job.parts = job.parts.map((part) => (part.state === "failed" ? { state: "pending" } : part));
    job.isOver = false;
    await whileRunning(job, () => runs.run(job, signal));
  }

  return {
    async retry(event, signal) {
      if (repeated.delete(event.key)) return undefined;
      // Before the first wait, so that no further press is missed.
      retrying.add(event.turnId);
      try {
        const found = await findOwn(event);
        if (typeof found === "string") return found;
        await drawFailed(found.job, signal);
        return undefined;
      } finally {
        retrying.delete(event.turnId);
      }
    },
    async remove(event) {
      const found = await findOwn(event);
      if (typeof found === "string") return found;
      const { job, part: number } = found;
      const part = job.parts[number - 1];
      if (part?.state !== "done") return undefined;
      const sink = adapterOf(job.reply.platform).sink(job.reply);
      try {
        await callPlatform((signal) => sink.remove(part.messageId, signal));
      } catch (err) {
        if (!isRefusal(err)) throw err;
        log.warn({ err, jobId: job.id }, "a picture could not be removed");
      }
      // The job may have been begun again meanwhile.
      const current = (await find(job.id)) ?? job;
      current.parts[number - 1] = { state: "deleted" };
      await jobs.save(current);
      await remember(current);
      return undefined;
    },
    notice(event) {
      if (event.kind !== "action" || event.action !== "retry") return;
      if (retrying.has(event.turnId)) repeated.add(event.key);
    },
  };
}
