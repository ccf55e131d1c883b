import type { Logger } from "pino";
import { estimateTokenCount } from "tokenx";
import { isAborted } from "../concurrency/abort.ts";
import { NEVER, runWithin } from "../concurrency/deadlines.ts";
import type { History } from "../history/history.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Scheduler } from "../pacing/scheduler.ts";
import type { Adapter } from "../port/adapter.ts";
import { toPictureId } from "../port/ids.ts";
import { FencedError, type Right } from "../port/right.ts";
import type { ReplySink } from "../port/sink.ts";
import type { Quota } from "../quota/quota.ts";
import type { SinkOf } from "../reply/paced-sink.ts";
import { writeReply } from "../reply/reply.ts";
import { removePosted, removeStrays } from "../turn/posted-answer.ts";
import { isDone, isSettled, type PictureTurn, picturesOf } from "../turn/record.ts";
import type { TurnRecords } from "../turn/records.ts";
import type { RunningPictures } from "../turn/running.ts";
import { type DrawingDeps, drawParts, type PictureReservation } from "./drawing.ts";
import type { KeptFiles } from "./picture-files.ts";
import { toHistoryText, toProgress, toRefused, toSummary } from "./wording.ts";

/**
 * The longest wait for a turn's first message. Requests start after that message, because it contains the Stop button.
 */
const FIRST_MESSAGE_MS = 120_000;

export interface PictureRunsDeps extends Pick<DrawingDeps, "gateway" | "references"> {
  records: Pick<TurnRecords, "savePicture" | "loadPicture">;
  files: Pick<KeptFiles, "keep">;
  history: Pick<History, "append" | "remove">;
  scheduler: Scheduler;
  adapterOf(platform: string): Pick<Adapter, "sink">;
  sinkOf: SinkOf;
  right: Right;
  /** Called after every finished or failed image. */
  onProgress(turnId: string): void;
  metrics: Pick<Metrics, "pictureEnded" | "tokens" | "platformCall" | "rateLimited">;
  quota: Pick<Quota, "reserve">;
  log: Logger;
}

export interface PictureRuns {
  /**
   * Creates a turn's pending images. A message above them shows the progress and disappears when all images are
   * visible. Resolves to false, without a request, if the channel accepts no message. Rejects if the turn must be
   * retried, for example with the signal's reason. With `mustAsk`, makes the first request even while the model is
   * paused.
   */
  run(running: RunningPictures, turn: PictureTurn, signal: AbortSignal, mustAsk: boolean): Promise<boolean>;
  /**
   * Like `run`, for images that belong to an answer. The answer shows the progress. A signal with the reason `stopped`
   * ends the turn.
   */
  runWithin(turn: PictureTurn, onNotice: (text: string) => void, signal: AbortSignal, mustAsk: boolean): Promise<void>;
  /** Creates or updates the history entry for a turn's images. Never rejects. */
  writeHistory(turn: PictureTurn): Promise<void>;
}

export function createPictureRuns(deps: PictureRunsDeps): PictureRuns {
  const { records, files, history, adapterOf, sinkOf, onProgress, metrics, quota, log } = deps;

  /**
   * Stores the entry as a user message: models see images only in user messages, and they imitate their own messages.
   */
  async function writeHistory(turn: PictureTurn): Promise<void> {
    const { id, at, conversationId, reply, author, after } = turn;
    const done = turn.parts.filter(isDone);
    const askedBy = { platform: reply.platform, id: author.id };
    const messages = [{ role: "user" as const, content: toHistoryText(turn) }];
    const entry = { id, at, askedBy, messages, attachments: picturesOf(turn) };
    const messageIds = done.map(({ messageId }) => messageId);
    try {
      if (done.length === 0) await history.remove(id);
      else await history.append(conversationId, entry, messageIds, after);
    } catch (err) {
      log.error({ err, turnId: id }, "an image could not be stored in the history");
    }
  }

  function toDrawingDeps(onStep: () => void): DrawingDeps {
    return {
      ...deps,
      async onEnd(turn, number, error) {
        const { model, id: turnId, ends = [] } = turn;
        onProgress(turnId);
        const isDrawn = error === undefined;
        const outcome = isDrawn ? "drawn" : error === "stopped" ? "stopped" : "failed";
        // Count the image before the record contains it, because a process that resumes the turn counts only pending
        // images.
        await metrics.pictureEnded(outcome, `${turnId}:${number}:${ends.length}`);
        if (outcome === "failed") log.warn({ err: error, turnId, number, model }, "an image was not created");
        else log.info({ turnId, number, model }, isDrawn ? "image shown" : "an image was stopped");
        const isKept = await records.savePicture(turn);
        if (isDrawn && isKept) await Promise.all([writeHistory(turn), files.keep(turn, NEVER)]);
        onStep();
      },
      reserve: (turn, number, signal) => reservePicture({ quota, metrics }, turn, number, signal),
    };
  }

  async function end(turn: PictureTurn): Promise<void> {
    const outcome = turn.parts.every(isSettled) ? "complete" : "failed";
    Object.assign(turn, { phase: "final", attempts: 0, ends: [...(turn.ends ?? []), outcome] });
    await records.savePicture(turn);
  }

  return {
    writeHistory,
    async run(running, turn, signal, mustAsk) {
      const sink = adapterOf(turn.reply.platform).sink(turn.reply, deps.right);
      const phase = turn.posted.length > 0 ? "posted" : "received";
      Object.assign(turn, { attempts: turn.attempts + 1, phase });
      await records.savePicture(turn);
      const drawPending = async (show: (notice: string) => void) => {
        if (!running.stop.aborted) await files.keep(turn, signal);
        const drawing = { turn, sink: sinkOf(turn.reply, sink), onNotice: show, mustAsk, stop: running.stop };
        const step = toDrawingDeps(() => show(""));
        await drawParts(step, drawing, signal);
        running.retries(false);
      };
      try {
        const isWritten = await writeProgress(deps, sink, turn, drawPending, signal);
        signal.throwIfAborted();
        await end(turn);
        return isWritten;
      } catch (error) {
        if (isAborted(signal, "forgotten")) await removePosted(deps, turn).catch(() => {});
        const isLost = isAborted(signal, "lost", "shutdown") || error instanceof FencedError;
        if (isLost) await removeStrays({ ...deps, load: records.loadPicture }, turn);
        throw error;
      }
    },
    async runWithin(turn, onNotice, signal, mustAsk) {
      await records.savePicture(turn);
      const [stop, cut] = splitSignal(signal);
      await files.keep(turn, signal);
      const drawing = { turn, sink: sinkOf(turn.reply), onNotice, mustAsk, stop };
      await drawParts(
        toDrawingDeps(() => {}),
        drawing,
        cut,
      );
      await end(turn);
    },
  };
}

/** Keeps the progress message up to date during the requests. Resolves to false if the channel refuses the message. */
async function writeProgress(
  { right, records, scheduler, metrics, log }: PictureRunsDeps,
  sink: ReplySink,
  turn: PictureTurn,
  drawPending: (show: (notice: string) => void) => Promise<void>,
  signal: AbortSignal,
): Promise<boolean> {
  const first = Promise.withResolvers<boolean>();
  if (turn.posted.length > 0) first.resolve(true);
  const isPending = () => turn.parts.some(({ state }) => state === "pending");
  let isRefused = false;

  const produce = async (_: unknown, tell: (words: string) => void) => {
    const show = (notice: string) => isPending() && tell(toProgress(turn, notice));
    show("");
    if (isPending() && (await runWithin(FIRST_MESSAGE_MS, () => first.promise, signal))) await drawPending(show);
    return "stop";
  };
  await writeReply(produce, {
    sink,
    right,
    scheduler,
    record: turn,
    isResumed: turn.attempts > 1,
    stopId: toPictureId(turn.id, 0),
    refusal: () => toRefused(turn),
    async onRecord() {
      if (turn.posted.length > 0) turn.phase = "posted";
      await records.savePicture(turn);
      if (turn.posted.length > 0) first.resolve(true);
    },
    onSeen: async () => {},
    onCall(call, error) {
      metrics.platformCall(turn.reply.platform, call);
      if (error?.kind === "rate-limited") metrics.rateLimited("platform");
      if (error !== undefined) log.warn({ err: error, turnId: turn.id, call }, "a write was refused");
    },
    onRefused() {
      // Ignore a refusal of a later edit and still show the images: a person deleted the message, or a filter blocked
      // it.
      isRefused ||= turn.posted.length === 0;
      first.resolve(false);
    },
    onEnd(cause) {
      if (!("error" in cause)) return isRefused ? { note: "", buttons: [] } : toSummary(turn);
      if (isAborted(signal, "forgotten")) return undefined;
      throw cause.error;
    },
  });
  return !isRefused || turn.posted.length > 0;
}

/** Splits a signal in two: the reason `stopped` aborts the first signal, and every other reason aborts the second. */
function splitSignal(signal: AbortSignal): [stop: AbortSignal, cut: AbortSignal] {
  const [stop, cut] = [new AbortController(), new AbortController()];
  const passOn = () => (isAborted(signal, "stopped") ? stop : cut).abort(signal.reason);
  if (signal.aborted) passOn();
  else signal.addEventListener("abort", passOn, { once: true });
  return [stop.signal, cut.signal];
}

async function reservePicture(
  { quota, metrics }: Pick<PictureRunsDeps, "quota" | "metrics">,
  { id: turnId, author, reply, model, prompt }: PictureTurn,
  number: number,
  signal: AbortSignal,
): Promise<PictureReservation> {
  const promptTokens = estimateTokenCount(prompt);
  const need = { id: `${turnId}:${number}`, by: { author, reply, model }, promptTokens, pictures: 1 };
  const { settle } = await quota.reserve(need, signal);
  return {
    async settle(spent) {
      if (typeof spent === "string") return settle(spent);
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
