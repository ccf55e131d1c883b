import type { Logger } from "pino";
import type { Adapter, ReplySink } from "../adapter.ts";
import type { Metrics } from "../metrics.ts";
import { callPlatform, isRefusal } from "../platform-call.ts";
import { type DrawingDeps, drawParts } from "./drawing.ts";
import type { JobStore } from "./job-store.ts";
import type { Remember } from "./memory.ts";
import type { PictureJob } from "./picture-job.ts";
import { createStatus, insist, type Status } from "./status.ts";
import { toStatusNonce } from "./waiting.ts";
import { toProgress, toSummary } from "./wording.ts";

/** A job that was begun this often without an end is given up: something about it ends the process each time. */
const MAX_ATTEMPTS = 20;

export interface JobRunDeps extends Pick<DrawingDeps, "gateway" | "references"> {
  jobs: Pick<JobStore, "save">;
  remember: Remember;
  adapterOf(platform: string): Adapter;
  metrics: Pick<Metrics, "pictureEnded" | "tokens">;
  log: Logger;
}

export interface JobRuns {
  /**
   * Draws what is pending of a job, under a message that says how far it is, and that goes when every picture is
   * there. Resolves to false when nothing can be written there, and then nothing is drawn. Rejects when it has to be
   * tried again, with the signal's reason among others.
   */
  run(job: PictureJob, signal: AbortSignal): Promise<boolean>;
  /** As `run`, for somebody who says in words of their own how far it is. */
  runWithin(job: PictureJob, onNotice: (text: string) => void, signal: AbortSignal): Promise<void>;
}

export function createJobRuns(deps: JobRunDeps): JobRuns {
  const { jobs, remember, adapterOf, metrics, log } = deps;

  function toDrawingDeps(onStep: () => void): DrawingDeps {
    return {
      ...deps,
      async onEnd(job, number, error) {
        const { model, id: jobId } = job;
        const isDrawn = error === undefined;
        metrics.pictureEnded(isDrawn ? "drawn" : "failed");
        if (isDrawn) log.info({ jobId, number, model }, "picture shown");
        else log.warn({ err: error, jobId, number, model }, "a picture was not drawn");
        await jobs.save(job);
        if (isDrawn) await remember(job);
        onStep();
      },
      onUsage(promptTokens, completionTokens) {
        metrics.tokens("prompt", promptTokens, false);
        metrics.tokens("completion", completionTokens, false);
      },
    };
  }

  /** Undefined when nothing can be written there. */
  async function openStatus(job: PictureJob, sink: ReplySink, signal: AbortSignal): Promise<Status | undefined> {
    const draft = toProgress(job, "");
    if (job.statusId !== undefined) {
      const status = createStatus(sink, job.statusId);
      status.show(draft);
      return status;
    }
    try {
      const post = () => callPlatform((signal) => sink.post(draft, toStatusNonce(job.id), signal));
      job.statusId = (await insist(post, signal)).id;
      return createStatus(sink, job.statusId, draft);
    } catch (err) {
      if (!isRefusal(err)) throw err;
      log.warn({ err, jobId: job.id }, "pictures were asked for where nothing can be written");
      return undefined;
    }
  }

  async function end(job: PictureJob, status: Status | undefined, signal: AbortSignal): Promise<void> {
    const summary = toSummary(job);
    await status?.close(summary, signal);
    if (summary === undefined) delete job.statusId;
    job.isOver = true;
    job.attempts = 0;
    await jobs.save(job);
  }

  return {
    async run(job, signal) {
      const sink = adapterOf(job.reply.platform).sink(job.reply);
      const status = await openStatus(job, sink, signal);
      if (status === undefined) {
        await end(job, status, signal);
        return false;
      }
      begin(job);
      await jobs.save(job);
      const show = (notice: string) => {
        if (job.parts.some(({ state }) => state === "pending")) status.show(toProgress(job, notice));
      };
      try {
        await drawParts(
          toDrawingDeps(() => show("")),
          { job, sink, onNotice: show },
          signal,
        );
      } catch (error) {
        if (signal.reason === "forgotten") await status.close(undefined, AbortSignal.timeout(5_000)).catch(() => {});
        throw error;
      }
      await end(job, status, signal);
      return true;
    },
    async runWithin(job, onNotice, signal) {
      const sink = adapterOf(job.reply.platform).sink(job.reply);
      begin(job);
      await jobs.save(job);
      await drawParts(
        toDrawingDeps(() => {}),
        { job, sink, onNotice },
        signal,
      );
      await end(job, undefined, signal);
    },
  };
}

function begin(job: PictureJob): void {
  job.attempts += 1;
  if (job.attempts <= MAX_ATTEMPTS) return;
  const reason = "Given up: it was begun again and again without reaching its end.";
  job.parts = job.parts.map((part) => (part.state === "pending" ? { state: "failed", reason, canRetry: true } : part));
}
