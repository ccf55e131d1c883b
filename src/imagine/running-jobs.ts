import { cut } from "../concurrency/cut.ts";
import { untilAborted } from "../concurrency/deadlines.ts";
import type { Actor } from "../port/catalogue.ts";
import { mayPress } from "../turn/rights.ts";
import type { JobStore } from "./job-store.ts";
import type { PictureJob } from "./picture-job.ts";

/** Longest that a button of a picture waits until its job knows of the picture. */
const SETTLE_MS = 180_000;

/** Work on a job. It ends early, and keeps what is done, when `stop` aborts. */
export type JobWork<T> = (stop: AbortSignal) => Promise<T>;

/** The jobs that are at work in this process, what people want of them meanwhile, and who waits for a picture of theirs. */
export interface RunningJobs {
  /** The job that runs, so that what is changed meanwhile is changed in it; else the one that is stored. */
  find(id: string): Promise<PictureJob | undefined>;
  /** Like `find`, but waits a while for this picture's end: people may press before the job knows of it. */
  findSettled(id: string, number: number, signal: AbortSignal): Promise<PictureJob | undefined>;
  /** Makes a job known as one that runs, for as long as the work on it takes. */
  whileRunning<T>(job: PictureJob, work: JobWork<T>): Promise<T>;
  /** To be told when a picture of a job has its end. */
  settle(jobId: string): void;
  /** Ends the work on a job. Undefined when there is none; false when this person may not. */
  stop(jobId: string, by: Actor): boolean | undefined;
}

interface Running {
  job: PictureJob;
  controller: AbortController;
}

interface Waiter {
  jobId: string;
  change: PromiseWithResolvers<void>;
}

export function createRunningJobs(jobs: Pick<JobStore, "load">, settleMs = SETTLE_MS): RunningJobs {
  const running = new Map<string, Running>();
  const waiters = new Set<Waiter>();

  function settle(jobId: string): void {
    for (const waiter of waiters) if (waiter.jobId === jobId) waiter.change.resolve();
  }

  const find: RunningJobs["find"] = async (id) => running.get(id)?.job ?? (await jobs.load(id));

  return {
    find,
    async findSettled(id, number, signal) {
      const bound = AbortSignal.any([signal, AbortSignal.timeout(settleMs)]);
      const waiter: Waiter = { jobId: id, change: Promise.withResolvers() };
      waiters.add(waiter);
      try {
        for (;;) {
          // Before the look, so that nothing which ends meanwhile is missed.
          waiter.change = Promise.withResolvers();
          const job = await find(id);
          if (job === undefined || job.isOver || job.parts[number - 1]?.state !== "pending") return job;
          await untilAborted(waiter.change.promise, bound).catch(() => {});
          signal.throwIfAborted();
          if (bound.aborted) return job;
        }
      } finally {
        waiters.delete(waiter);
      }
    },
    async whileRunning(job, work) {
      const entry: Running = { job, controller: new AbortController() };
      running.set(job.id, entry);
      try {
        return await work(entry.controller.signal);
      } finally {
        if (running.get(job.id) === entry) running.delete(job.id);
        settle(job.id);
      }
    },
    settle,
    stop(jobId, by) {
      const entry = running.get(jobId);
      if (entry === undefined) return undefined;
      if (!mayPress(by, entry.job)) return false;
      cut(entry.controller, "stopped");
      return true;
    },
  };
}
