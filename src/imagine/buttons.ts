import type { Logger } from "pino";
import type { References } from "../media/reference.ts";
import type { ActionEvent, InboundEvent } from "../port/events.ts";
import { isSamePerson } from "../port/identity.ts";
import { readPictureId } from "../port/ids.ts";
import type { SinkOf } from "../reply/paced-sink.ts";
import { isRefusal } from "../reply/platform-call.ts";
import { mayPress, toPressedReply } from "../turn/rights.ts";
import type { WriteHistory } from "./history-entry.ts";
import type { FindJobRefusal } from "./job-refusal.ts";
import type { JobStore } from "./job-store.ts";
import { TOO_OLD } from "./new-job.ts";
import type { PictureJob } from "./picture-job.ts";
import type { RunningJobs } from "./running-jobs.ts";

const HAS_ENDED = "This has ended already.";
const NOT_YOURS = "Only the person who asked for this picture, or a moderator, can do that.";

export interface ButtonsDeps {
  jobs: Pick<JobStore, "save" | "askStop" | "dropStop">;
  running: Pick<RunningJobs, "find" | "findSettled" | "stop">;
  work: WorkOnJob;
  writeHistory: WriteHistory;
  /** Deleted pictures are not to be fetched any more. */
  links: Pick<References, "erase">;
  sinkOf: SinkOf;
  findRefusal: FindJobRefusal;
  log: Logger;
}

/** Draws what is pending of a job, unless somebody wants it to end; `mustAsk` as in `JobRuns`. Resolves to false when nothing can be written there. */
export type WorkOnJob = (job: PictureJob, signal: AbortSignal, mustAsk?: boolean) => Promise<boolean>;

/** The buttons that belong to the person who asked for the picture. Each resolves to a sentence when nothing is done. */
export interface JobButtons {
  /** Draws the parts of a job that failed; pressed again while it is at work on that, it does nothing more. */
  retry(event: ActionEvent, signal: AbortSignal): Promise<string | undefined>;
  remove(event: ActionEvent, signal: AbortSignal): Promise<string | undefined>;
  /** Ends a running job, or one that is yet to begin; `waiting` is the event that asked for it, if known. */
  stop(event: ActionEvent, waiting: InboundEvent | undefined): Promise<string | undefined>;
  /** Called with every event when it is accepted. */
  onAccepted(event: InboundEvent): void;
}

export function createJobButtons(deps: ButtonsDeps): JobButtons {
  const { jobs, running, work, writeHistory, links, sinkOf, findRefusal, log } = deps;
  /** Jobs that a Retry is at work on, and keys of those that were pressed meanwhile. */
  const retrying = new Set<string>();
  const repeated = new Set<string>();
  /** Keys of stops that ended a job when they came, and have yet to come up in their conversation. */
  const effective = new Set<string>();

  async function findOwn(event: ActionEvent, signal: AbortSignal): Promise<{ job: PictureJob; part: number } | string> {
    const id = readPictureId(event.turnId);
    const job = id && (await running.findSettled(id.jobId, id.part, signal));
    if (id === undefined || job === undefined) return TOO_OLD;
    return mayPress(event, job) ? { job, part: id.part } : NOT_YOURS;
  }

  /** A new drawing must be allowed to the person who asked and to the person who pressed. */
  async function findRefusalForBoth(job: PictureJob, { author }: ActionEvent): Promise<string | undefined> {
    const refusal = await findRefusal({ ...job, author });
    return refusal ?? (isSamePerson(author, job) ? undefined : findRefusal(job));
  }

  async function drawFailed(job: PictureJob, signal: AbortSignal): Promise<void> {
    const failed = job.parts.some(({ state }) => state === "failed");
    // Taken up after a crash, they are pending again already.
    if (!failed && job.isOver) return;
    if (job.isOver) {
      job.retries = (job.retries ?? 0) + 1;
      job.parts = job.parts.map((part) => (part.state === "failed" ? { state: "pending" } : part));
      // The person wants again what was stopped before.
      await jobs.dropStop(job.id);
    }
    job.isOver = false;
    await work(job, signal, true);
  }

  return {
    async retry(event, signal) {
      if (repeated.delete(event.key)) return undefined;
      // Before the first wait, so that no further press is missed.
      retrying.add(event.turnId);
      try {
        const found = await findOwn(event, signal);
        if (typeof found === "string") return found;
        const refusal = found.job.isOver ? await findRefusalForBoth(found.job, event) : undefined;
        if (refusal !== undefined) return refusal;
        await drawFailed(found.job, signal);
        return undefined;
      } finally {
        retrying.delete(event.turnId);
      }
    },
    async remove(event, signal) {
      const found = await findOwn(event, signal);
      if (typeof found === "string") return found;
      const { job, part: number } = found;
      const part = job.parts[number - 1];
      if (part?.state !== "done") return undefined;
      const sink = sinkOf(toPressedReply(event, job, 1));
      try {
        await sink.remove(part.messageId, signal);
      } catch (err) {
        if (!isRefusal(err)) throw err;
        log.warn({ err, jobId: job.id }, "a picture could not be removed");
      }
      // Before the job forgets the file: once more, when the store fails, this all begins anew.
      if (part.attachment !== undefined) await links.erase([part.attachment]);
      // The job may have been begun again meanwhile.
      const current = (await running.find(job.id)) ?? job;
      current.parts[number - 1] = { state: "deleted" };
      await jobs.save(current);
      await writeHistory(current);
      return undefined;
    },
    async stop(event, waiting) {
      const { key, turnId } = event;
      const wasEffective = effective.delete(key);
      const jobId = readPictureId(turnId)?.jobId;
      if (jobId === undefined) return undefined;
      const job = await running.find(jobId);
      const asked = job ?? waiting;
      if (asked !== undefined && !mayPress(event, asked)) return NOT_YOURS;
      if (job?.isOver === true) return wasEffective ? undefined : HAS_ENDED;
      // Kept first: the process may die before the job has its end, and the job may begin at this moment.
      await jobs.askStop(jobId, event);
      running.stop(jobId, event);
      return undefined;
    },
    onAccepted(event) {
      if (event.kind !== "action") return;
      if (event.action === "stop") {
        const isStopped = running.stop(readPictureId(event.turnId)?.jobId ?? "", event);
        if (isStopped === true) effective.add(event.key);
      }
      if (event.action !== "retry") return;
      if (retrying.has(event.turnId)) repeated.add(event.key);
    },
  };
}
