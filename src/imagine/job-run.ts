import type { Logger } from "pino";
import { estimateTokenCount } from "tokenx";
import { isCut } from "../concurrency/cut.ts";
import { NEVER } from "../concurrency/deadlines.ts";
import type { PictureCopies } from "../media/picture-copies.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { ReplySink } from "../port/sink.ts";
import type { Quota } from "../quota/quota.ts";
import type { SinkOf } from "../reply/paced-sink.ts";
import { isRefusal } from "../reply/platform-call.ts";
import { type DrawingDeps, drawParts, type PictureReservation } from "./drawing.ts";
import type { WriteHistory } from "./history-entry.ts";
import type { JobStore } from "./job-store.ts";
import { filesOf, type PictureJob, toEndId } from "./picture-job.ts";
import { createStatus, insist, type Status } from "./status.ts";
import { toStatusNonce } from "./waiting.ts";
import { toProgress, toSummary } from "./wording.ts";

const GIVEN_UP = "Given up: I tried this again and again without coming to its end.";

export interface JobRunDeps extends Pick<DrawingDeps, "gateway" | "references"> {
  jobs: Pick<JobStore, "save">;
  /** Told of every picture that has its end. */
  onSettled(jobId: string): void;
  /** Keeps what will not stay where it is, for as long as the job. */
  copies: Pick<PictureCopies, "keep">;
  writeHistory: WriteHistory;
  sinkOf: SinkOf;
  metrics: Pick<Metrics, "pictureEnded" | "tokens">;
  quota: Pick<Quota, "reserve">;
  log: Logger;
}

export interface JobRuns {
  /**
   * Draws what is pending of a job, under a message that says how far it is, and that goes when every picture is
   * there. Resolves to false when nothing can be written there, and then nothing is drawn. Rejects when it has to be
   * tried again, with the signal's reason among others. `stop` ends it early. `mustAsk`: the
   * first request is made although the model is left alone at the moment.
   */
  run(job: PictureJob, stop: AbortSignal, signal: AbortSignal, mustAsk?: boolean): Promise<boolean>;
  /** Draws nothing more of a job, and says so. Rejects when that has to be tried again. */
  giveUp(job: PictureJob, signal: AbortSignal): Promise<void>;
  /** Like `run`, for a caller that tells in its own words how far it is; the reason `stopped` of the signal is its `stop`. */
  runWithin(job: PictureJob, onNotice: (text: string) => void, signal: AbortSignal, mustAsk: boolean): Promise<void>;
}

export function createJobRuns(deps: JobRunDeps): JobRuns {
  const { jobs, onSettled, copies, writeHistory, sinkOf, metrics, quota, log } = deps;

  function toDrawingDeps(onStep: () => void): DrawingDeps {
    return {
      ...deps,
      async onEnd(job, number, error) {
        const { model, id: jobId } = job;
        onSettled(jobId);
        const isDrawn = error === undefined;
        const outcome = isDrawn ? "drawn" : error === "stopped" ? "stopped" : "failed";
        // Before it is written down: after that nobody would count it.
        await metrics.pictureEnded(outcome, toEndId(job, number));
        if (outcome === "failed") log.warn({ err: error, jobId, number, model }, "a picture was not drawn");
        else log.info({ jobId, number, model }, isDrawn ? "picture shown" : "a picture was stopped");
        const isKept = await jobs.save(job);
        if (isDrawn && isKept) await Promise.all([writeHistory(job), keepFiles(job, NEVER)]);
        onStep();
      },
      reserve: (job, number, signal) => reservePicture({ quota, metrics }, job, number, signal),
    };
  }

  const keepFiles = (job: PictureJob, signal: AbortSignal): Promise<void> =>
    copies.keep(filesOf(job), { jobId: job.id, platform: job.reply.platform, authorId: job.author.id }, signal);

  /** Undefined when nothing can be written there. */
  async function openStatus(job: PictureJob, sink: ReplySink, signal: AbortSignal): Promise<Status | undefined> {
    const draft = toProgress(job, "");
    if (job.statusId !== undefined) {
      const status = createStatus(sink, job.statusId);
      status.show(draft);
      return status;
    }
    try {
      const post = () => sink.post(draft, toStatusNonce(job.id), signal);
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
    await jobs.save(job);
  }

  return {
    async run(job, stop, signal, mustAsk = false) {
      const sink = sinkOf(job.reply);
      const status = await openStatus(job, sink, signal);
      if (status === undefined) {
        await end(job, status, signal);
        return false;
      }
      await jobs.save(job);
      const show = (notice: string) => {
        if (job.parts.some(({ state }) => state === "pending")) status.show(toProgress(job, notice));
      };
      try {
        await keepFiles(job, signal);
        await drawParts(
          toDrawingDeps(() => show("")),
          { job, sink, onNotice: show, mustAsk, stop },
          signal,
        );
      } catch (error) {
        await letGo(status, signal);
        throw error;
      }
      await end(job, status, signal);
      return true;
    },
    async giveUp(job, signal) {
      await failPending(job, metrics);
      await end(job, await openStatus(job, sinkOf(job.reply), signal), signal);
      onSettled(job.id);
    },
    async runWithin(job, onNotice, signal, mustAsk) {
      await jobs.save(job);
      const [stop, cut] = splitSignal(signal);
      await keepFiles(job, signal);
      await drawParts(
        toDrawingDeps(() => {}),
        { job, sink: sinkOf(job.reply), onNotice, mustAsk, stop },
        cut,
      );
      await end(job, undefined, cut);
    },
  };
}

/** Ends an attempt that was cut: the message stays for the next attempt, but goes with what is forgotten. */
async function letGo(status: Status, signal: AbortSignal): Promise<void> {
  if (!isCut(signal, "forgotten")) return status.leave();
  await status.close(undefined, AbortSignal.timeout(5_000)).catch(() => {});
}

async function failPending(job: PictureJob, metrics: JobRunDeps["metrics"]): Promise<void> {
  for (const [index, { state }] of job.parts.entries()) {
    if (state === "pending") await metrics.pictureEnded("failed", toEndId(job, index + 1));
  }
  const given = { state: "failed", reason: GIVEN_UP, canRetry: true } as const;
  job.parts = job.parts.map((part) => (part.state === "pending" ? given : part));
}

/** Aborts the first one for the reason `stopped`, the second one for any other. */
function splitSignal(signal: AbortSignal): [stop: AbortSignal, cut: AbortSignal] {
  const [stop, cut] = [new AbortController(), new AbortController()];
  const passOn = () => (isCut(signal, "stopped") ? stop : cut).abort(signal.reason);
  if (signal.aborted) passOn();
  else signal.addEventListener("abort", passOn, { once: true });
  return [stop.signal, cut.signal];
}

async function reservePicture(
  { quota, metrics }: Pick<JobRunDeps, "quota" | "metrics">,
  { id: jobId, author, reply, model, prompt }: PictureJob,
  number: number,
  signal: AbortSignal,
): Promise<PictureReservation> {
  const promptTokens = estimateTokenCount(prompt);
  const need = { id: `${jobId}:${number}`, by: { author, reply, model }, promptTokens, pictures: 1 };
  const { confirm, settle } = await quota.reserve(need, signal);
  return {
    confirm,
    async settle(spent) {
      if (spent === undefined) return settle(undefined);
      const { pictures, usage } = spent;
      if (usage !== undefined) {
        metrics.tokens("prompt", usage.promptTokens, false);
        metrics.tokens("completion", usage.completionTokens, false);
      }
      const isEstimated = usage === undefined;
      return settle({ ...(usage ?? { promptTokens, completionTokens: 0 }), pictures, isEstimated });
    },
  };
}
