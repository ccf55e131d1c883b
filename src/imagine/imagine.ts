import type { Logger } from "pino";
import { asTakenUp } from "../concurrency/fence.ts";
import { createKeyedQueue } from "../concurrency/keyed-queue.ts";
import type { History } from "../history/history.ts";
import type { References } from "../media/reference.ts";
import type { ListModels } from "../port/catalogue.ts";
import type { ActionEvent, AttachmentRef, Author, CommandEvent, InboundEvent, ReplyAddress } from "../port/events.ts";
import { readPictureId, toTurnId } from "../port/ids.ts";
import { ToolError } from "../tools/tool.ts";
import type { ShowPicture } from "../turn/answer-pictures.ts";
import { createJobButtons } from "./buttons.ts";
import { createShowGiven } from "./given-picture.ts";
import { createWriteHistory } from "./history-entry.ts";
import type { FindJobRefusal } from "./job-refusal.ts";
import { createJobRuns, type JobRunDeps } from "./job-run.ts";
import type { JobStore } from "./job-store.ts";
import { type NewJob, readCommand, TOO_OLD, toJob, toNextJob } from "./new-job.ts";
import type { PictureJob } from "./picture-job.ts";
import type { ImagineRequest } from "./request.ts";
import type { RunningJobs } from "./running-jobs.ts";
import { createWaitingMessages } from "./waiting.ts";

const NOT_SET_UP =
  "I cannot draw here: no model for pictures is configured. The operator can set `IMAGE_MODEL` to one that the AI service offers.";
const GIVEN_UP = "Given up: I tried this again and again without coming to its end. You can ask once more.";
const NOT_HERE = "I may not write here, so nothing was drawn. Let me into this channel, then ask once more.";

/** Draws for events, each once: a job that was cut is continued. Methods reject when the event must be worked on again. */
export interface Imagine {
  /** Draws what a command asks for. Resolves to a sentence for the person when nothing can be drawn. */
  request(event: CommandEvent, signal: AbortSignal): Promise<string | undefined>;
  /** Does what a button of a picture, or of a job, asks for. Resolves to a sentence for the person when it does not. */
  act(event: ActionEvent, signal: AbortSignal): Promise<string | undefined>;
  /** Ends what an event asks for without drawing. Resolves to a sentence for the person where no message of it says so. */
  giveUp(event: CommandEvent | ActionEvent, signal: AbortSignal): Promise<string | undefined>;
  /** Takes away what says that this event waits: nothing is drawn for it. */
  dismiss(event: CommandEvent | ActionEvent): Promise<void>;
  /** Draws inside a turn, in its place, and resolves to the job with the end of each part. */
  draw(request: TurnRequest, onNotice: (text: string) => void, signal: AbortSignal): Promise<PictureJob>;
  /** Shows a picture that came with an answer, and keeps it as one that was drawn; one that is shown already is left. */
  show: ShowPicture;
  /** Called with every event when it is accepted: a button pressed twice is known by that. */
  onAccepted(event: InboundEvent): void;
  /** Called with an event that has to wait until other pictures are drawn. */
  onWaiting(event: InboundEvent): void;
  /** Erases what a person asked for, `within` conversations whose ids begin so; nothing of it is drawn at this time. */
  forget(platform: string, authorId: string, within?: string): Promise<void>;
}

/** The pictures that a turn asks for. The same id is the same request. */
export interface TurnRequest {
  id: string;
  conversationId: string;
  /** The entry of the history that it follows. */
  after: string | undefined;
  reply: ReplyAddress;
  author: Author;
  request: ImagineRequest;
  references: AttachmentRef[];
  /** The first request is made although the model is left alone at the moment. */
  mustAsk: boolean;
}

export interface ImagineDeps extends Omit<JobRunDeps, "jobs" | "writeHistory" | "onSettled"> {
  jobs: JobStore;
  running: RunningJobs;
  history: Pick<History, "append" | "remove">;
  links: Pick<References, "erase">;
  listModels: ListModels;
  /** The usual one; undefined: nothing is drawn. */
  model: string | undefined;
  maxReferences: number;
  /** Told of every picture that is drawn, or failed to be. */
  onProgress(jobId: string): void;
  findRefusal: FindJobRefusal;
}

type BeginJob = () => Promise<NewJob>;

export function createImagine(deps: ImagineDeps): Imagine {
  const { jobs, running, model, maxReferences, sinkOf, log } = deps;
  const waiting = createWaitingMessages({ jobs, sinkOf, log });
  const { run: inTurn } = createKeyedQueue();
  const writeHistory = createWriteHistory(deps.history, log);
  const onSettled = (jobId: string) => {
    running.settle(jobId);
    deps.onProgress(jobId);
  };
  const find = (id: string) => tryStore(log, () => jobs.load(id), id);
  const runs = createJobRuns({ ...deps, onSettled, writeHistory });
  const buttons = createJobButtons({ ...deps, work, writeHistory });

  function work(job: PictureJob, signal: AbortSignal, mustAsk = false): Promise<boolean> {
    return running.whileRunning(job, async (stop) => {
      const asked = await tryStore(log, () => jobs.whoAskedStop(job), job.id);
      if (asked !== undefined) running.stop(job.id, asked);
      const isShown = await runs.run(job, stop, signal, mustAsk);
      if (stop.aborted) await tryStore(log, () => jobs.dropStop(job.id), job.id);
      return isShown;
    });
  }

  /** Goes on with what an earlier attempt has made of the job of an event, or begins it. */
  function proceed(event: InboundEvent, begin: BeginJob, signal: AbortSignal): Promise<string | undefined> {
    const id = toTurnId(event.key);
    // A job that is stopped while it waits may come to its turn at the same moment.
    return inTurn(id, async () => {
      const known = await find(id);
      if (known?.isOver === true) return undefined;
      const found = known === undefined ? await allow(deps, await begin()) : { job: known };
      if ("refusal" in found) return waiting.dismiss(event).then(() => found.refusal);
      const { job } = found;
      job.statusId ??= await waiting.find(id);
      const mayStand = await tryStore(log, () => waiting.takeOver(id), id);
      const isShown = await (mayStand ? asTakenUp(() => work(job, signal)) : work(job, signal));
      waiting.leave(id);
      return isShown ? undefined : NOT_HERE;
    });
  }

  async function readNext(event: ActionEvent, signal: AbortSignal): Promise<NewJob> {
    const id = readPictureId(event.turnId);
    const find = () => running.findSettled(id?.jobId ?? "", id?.part ?? 0, signal);
    const job = id && (await (event.action === "again" ? running.find(id.jobId) : find()));
    if (id === undefined || job === undefined) return { refusal: TOO_OLD };
    return toNextJob(event, job, id.part, maxReferences);
  }

  async function draw(event: CommandEvent | ActionEvent, signal: AbortSignal): Promise<string | undefined> {
    if (model === undefined) return NOT_SET_UP;
    if (event.kind === "action") return proceed(event, () => readNext(event, signal), signal);
    return proceed(event, () => readCommand({ ...deps, model }, event, signal), signal);
  }

  /** A job that waits gets its last word at once, not when its turn comes. */
  async function stop(event: ActionEvent, signal: AbortSignal): Promise<string | undefined> {
    const waitingEvent = waiting.eventOf(readPictureId(event.turnId)?.jobId ?? "");
    const refusal = await buttons.stop(event, waitingEvent);
    const mayDraw = waitingEvent?.kind === "command" || waitingEvent?.kind === "action";
    if (refusal === undefined && mayDraw) await draw(waitingEvent, signal);
    return refusal;
  }

  return {
    request: draw,
    async act(event, signal) {
      if (event.action === "delete") return buttons.remove(event, signal);
      if (event.action === "stop") return stop(event, signal);
      return event.action === "retry" && model !== undefined ? buttons.retry(event, signal) : draw(event, signal);
    },
    async draw({ id, request, references, mustAsk, ...place }, onNotice, signal) {
      if (model === undefined) throw new Error("No model for pictures is configured.");
      const known = await find(id);
      const job = known ?? toJob({ ...place, id, request, model, references });
      if (known === undefined) await checkAllowed(deps, job);
      if (!job.isOver) await running.whileRunning(job, () => runs.runWithin(job, onNotice, signal, mustAsk));
      return job;
    },
    show: createShowGiven({ ...deps, onSettled, writeHistory, find }),
    giveUp(event, signal) {
      const isRetry = event.kind === "action" && event.action === "retry";
      const id = isRetry ? (readPictureId(event.turnId)?.jobId ?? "") : toTurnId(event.key);
      return inTurn(id, async () => {
        if (!isRetry) await waiting.dismiss(event);
        const job = await find(id);
        if (job === undefined) return GIVEN_UP;
        if (!job.isOver) await runs.giveUp(job, signal);
        return undefined;
      });
    },
    dismiss: waiting.dismiss,
    onWaiting(event) {
      // A Retry already has its message.
      const draws = event.kind === "command" || (event.kind === "action" && event.action !== "retry");
      if (model !== undefined && draws) waiting.announce(event);
    },
    async forget(platform, authorId, within) {
      await waiting.forget(platform, authorId, within);
      await jobs.forget(platform, authorId, within);
    },
    onAccepted: (event) => [buttons, waiting].forEach((told) => told.onAccepted(event)),
  };
}

/** A store that is out of reach must not keep a picture back: what was shown is found again on the platform. */
async function tryStore<T>(log: Logger, ask: () => Promise<T>, jobId: string): Promise<T | undefined> {
  try {
    return await ask();
  } catch (err) {
    log.error({ err, jobId }, "the record of a picture could not be read");
    return undefined;
  }
}

/** A job that the person who asks may have. */
async function allow({ findRefusal }: Pick<ImagineDeps, "findRefusal">, found: NewJob): Promise<NewJob> {
  const refusal = "job" in found ? await findRefusal(found.job) : undefined;
  return refusal === undefined ? found : { refusal };
}

async function checkAllowed({ findRefusal }: Pick<ImagineDeps, "findRefusal">, job: PictureJob): Promise<void> {
  const refusal = await findRefusal(job);
  if (refusal !== undefined) throw new ToolError(`Not drawn: the person who asks may not have that. ${refusal}`);
}
