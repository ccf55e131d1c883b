import { isCut } from "../concurrency/cut.ts";
import { mapBounded, runWithin } from "../concurrency/deadlines.ts";
import type { Detour, Gateway, RetryNotice } from "../gateway/client.ts";
import { isUndrawn } from "../gateway/errors.ts";
import type { GeneratedImage, ImageUsage } from "../gateway/image-answer.ts";
import type { ImageRequest, LinkedReference, ReferenceSource } from "../gateway/image-ways.ts";
import { fitPicture } from "../media/picture.ts";
import { describeReferenceFailure, type Prepared, type References } from "../media/reference.ts";
import type { ImageMimeType } from "../media/sniff.ts";
import { SinkError } from "../port/errors.ts";
import type { OutboundFile, Posted, ReplySink } from "../port/sink.ts";
import { callPlatform } from "../reply/platform-call.ts";
import { describeLack } from "../text/quote-name.ts";
import { describePictureFailure, PictureError, STOPPED } from "./failure.ts";
import type { PictureJob, PicturePart } from "./picture-job.ts";
import { insist } from "./status.ts";
import { toAltText, toCaption, toFileName } from "./wording.ts";

/** Requests of one job side by side. */
const MAX_PARALLEL = 2;
/** Longest for one picture, what the gateway's refusals cost included. */
const PART_TIMEOUT_MS = 300_000;
/** Longest for a whole job: twice two parts, one after the other. */
const JOB_TIMEOUT_MS = 900_000;
/** Longest that one picture may wait for its place in the channel, and for the platform to take it. */
const UPLOAD_TIMEOUT_MS = 180_000;
/** Links to references are good for longer than one request takes, and are made anew after this. */
const LINKS_KEPT_MS = 180_000;
/** Beyond the largest size that any model draws. */
const MAX_PIXELS = 100_000_000;
const MAX_SIDE = 16_384;

const NOT_TAKEN = "It was drawn, but could not be shown here.";

export interface DrawingDeps {
  gateway: Pick<Gateway, "generateImage">;
  references: Pick<References, "prepare" | "load">;
  /** Told of every part that has its end, with the reason of `stop` for what was stopped; the next step waits for it. */
  onEnd(job: PictureJob, number: number, error: unknown): Promise<void>;
  /** Keeps room for a picture before it is asked for. Rejects where a limit does not allow it. */
  reserve(job: PictureJob, number: number, signal: AbortSignal): Promise<PictureReservation>;
}

export interface PictureReservation {
  /** Waited for right before each call of the gateway. Rejects where it may not be made. */
  confirm(signal: AbortSignal): Promise<void>;
  /** Counts what a request used; undefined: nothing, because the gateway refused it. */
  settle(spent: { pictures: number; usage?: ImageUsage | undefined } | undefined): Promise<void>;
}

export interface Drawing {
  job: PictureJob;
  sink: ReplySink;
  /** Told in words what a picture waits for, "" when it waits no longer. */
  onNotice(text: string): void;
  /** The first request is made although the model is left alone at the moment. */
  mustAsk: boolean;
  /** Ends it early: what is drawn already is still shown, the rest counts as stopped. */
  stop: AbortSignal;
}

/**
 * Draws and shows every pending part, each in its own message. A failure ends its part. Rejects only with the signal's
 * reason: pending parts can be drawn later, and one shown already is found again.
 */
export async function drawParts(deps: DrawingDeps, drawing: Drawing, signal: AbortSignal): Promise<void> {
  const { job } = drawing;
  const references = createSource(deps.references, job);
  const deadlineMs = performance.now() + JOB_TIMEOUT_MS;
  const numbers = job.parts.flatMap(({ state }, index) => (state === "pending" ? [index + 1] : []));
  await mapBounded(numbers, MAX_PARALLEL, async (number) => {
    // A rejection would leave the parts beside it to themselves.
    if (signal.aborted) return;
    const timeoutMs = Math.max(1, Math.min(PART_TIMEOUT_MS, deadlineMs - performance.now()));
    let failure: unknown;
    let end: PicturePart;
    try {
      end = await drawPart(deps, drawing, { number, references, timeoutMs }, signal);
    } catch (error) {
      if (signal.aborted) return;
      failure = error;
      end = drawing.stop.aborted && error === drawing.stop.reason ? STOPPED : toFailed(job, error);
    }
    job.parts[number - 1] = end;
    await deps.onEnd(job, number, failure);
  });
  signal.throwIfAborted();
}

function toFailed(job: PictureJob, error: unknown): PicturePart {
  const reason = describeReferenceFailure(error, job.references);
  if (reason !== undefined) return { state: "failed", reason, canRetry: true };
  return { state: "failed", ...describePictureFailure(error, job.model, Date.now()) };
}

interface Step {
  number: number;
  references: ReferenceSource | undefined;
  timeoutMs: number;
}

async function drawPart(
  { gateway, reserve }: DrawingDeps,
  { job, sink, onNotice, mustAsk, stop }: Drawing,
  { number, references, timeoutMs }: Step,
  signal: AbortSignal,
): Promise<PicturePart> {
  const onRetry = ({ waitMs }: RetryNotice) => {
    onNotice(`The AI service is busy; asking again in ${Math.max(1, Math.round(waitMs / 1_000))} s.`);
  };
  let isElsewhere = false;
  const onDetour = (detour: Detour | undefined) => {
    isElsewhere = detour !== undefined;
    onNotice(isElsewhere ? "The AI service does not answer; asking the second one." : "Asking it once more.");
  };
  const { confirm, settle } = await reserve(job, number, AbortSignal.any([signal, stop]));
  let mayBeDrawn = false;
  const draw = async (signal: AbortSignal) => {
    const beforeSend = async () => {
      await confirm(signal);
      mayBeDrawn = true;
    };
    return gateway.generateImage(toRequest(job, references), signal, {
      beforeSend,
      onRetry,
      onDetour,
      mustAsk,
    });
  };
  let image: GeneratedImage;
  try {
    image = await runWithin(timeoutMs, draw, AbortSignal.any([signal, stop]));
  } catch (error) {
    // Cut off, it may have been drawn all the same.
    const isUnspent = error instanceof PictureError || isUndrawn(error);
    await settle(mayBeDrawn && !isUnspent ? { pictures: 1 } : undefined);
    throw error;
  }
  await settle({ pictures: 1, usage: image.usage });
  onNotice("");
  const tokens = image.usage && image.usage.promptTokens + image.usage.completionTokens;
  const file = await toFile(job, number, image, sink.limits.maxFileBytes, signal);
  const caption = toCaption(job, number, { text: image.text, tokens, isElsewhere, unmet: image.unmet }, sink.limits);
  const upload = (signal: AbortSignal) => sink.upload([file], caption, `${job.id}:${number}`, signal);
  const posted = await show(sink, upload, signal);
  return { state: "done", messageId: posted.id, attachment: posted.attachments?.[0], text: image.text, tokens };
}

/** Rejects with a `PictureError` when the platform does not take it. */
async function show(
  sink: ReplySink,
  upload: (signal: AbortSignal) => Promise<Posted>,
  signal: AbortSignal,
): Promise<Posted> {
  let latest: Promise<Posted> | undefined;
  const call = (signal: AbortSignal) => (latest = upload(signal));
  try {
    const posted = await insist(() => runWithin(UPLOAD_TIMEOUT_MS, call, signal), signal);
    signal.throwIfAborted();
    return posted;
  } catch (cause) {
    if (isCut(signal, "forgotten") && latest !== undefined) await takeBack(sink, latest);
    signal.throwIfAborted();
    throw new PictureError(describeUntaken(cause), { cause });
  }
}

function describeUntaken(cause: unknown): string {
  const missing = cause instanceof SinkError ? cause.missing : undefined;
  if (missing === undefined) return `${NOT_TAKEN} Press Retry to draw it again.`;
  return `${NOT_TAKEN} ${describeLack(missing)} Then press Retry to draw it again.`;
}

/** Removes what may still be on its way. Best effort. */
async function takeBack(sink: ReplySink, uploading: Promise<Posted>): Promise<void> {
  try {
    const { id } = await callPlatform(() => uploading);
    await callPlatform((signal) => sink.remove(id, signal));
  } catch {
    // It was never there, or the platform does not say.
  }
}

function toRequest({ model, ratio, size, ...job }: PictureJob, references?: ReferenceSource): ImageRequest {
  return {
    model,
    prompt: toInstruction(job),
    ...(references !== undefined && { references }),
    ...(ratio !== undefined && { aspectRatio: ratio }),
    ...(size !== undefined && { imageSize: size }),
  };
}

function toInstruction({ prompt, change }: Pick<PictureJob, "prompt" | "change">): string {
  if (change === "vary") {
    return `${prompt}\n\nThe first picture was drawn from these words. Draw a variation of it: the same subject and style, another composition.`;
  }
  if (change === "upscale") {
    return `${prompt}\n\nThe first picture was drawn from these words. Draw it once more exactly as it is, only larger and with finer detail.`;
  }
  return prompt;
}

async function toFile(
  job: PictureJob,
  number: number,
  image: GeneratedImage,
  maxBytes: number,
  signal: AbortSignal,
): Promise<OutboundFile> {
  const fitting = await fit(image, maxBytes, ownerOf(job), signal);
  return {
    name: toFileName(job, number, fitting.mimeType),
    contentType: fitting.mimeType,
    bytes: fitting.bytes,
    altText: toAltText(job),
    isSpoiler: job.isSpoiler,
  };
}

/** A picture passes as it is where the platform takes a file of its size, and is encoded anew where not. */
async function fit(
  image: GeneratedImage,
  maxBytes: number,
  owner: string,
  signal: AbortSignal,
): Promise<{ bytes: Uint8Array; mimeType: string }> {
  if (image.bytes.length <= maxBytes) return image;
  const limits = { maxPixels: MAX_PIXELS, maxSide: MAX_SIDE, maxSentBytes: maxBytes };
  const fitted = await fitPicture(image.bytes, image.mimeType as ImageMimeType, limits, owner, signal);
  if ("bytes" in fitted && fitted.bytes.length <= maxBytes) return fitted;
  throw new PictureError("It was drawn, but it is larger than a file may be here. Ask for a smaller size.");
}

/** The person who waits for a job's pictures to be decoded. */
function ownerOf({ reply, author }: PictureJob): string {
  return `${reply.platform}:${author.id}`;
}

/** Parts that are drawn side by side share the links. Bytes are kept no longer than one request takes. */
function createSource({ prepare, load }: DrawingDeps["references"], job: PictureJob): ReferenceSource | undefined {
  const refs = job.references;
  if (refs.length === 0) return undefined;
  const owner = { jobId: job.id, platform: job.reply.platform, authorId: job.author.id };
  let kept: { links: Promise<LinkedReference[]>; until: number } | undefined;
  return {
    async links(signal) {
      if (kept === undefined || kept.until < Date.now()) {
        kept = { links: prepare(refs, owner, signal).then(toParts), until: Date.now() + LINKS_KEPT_MS };
        kept.links.catch(() => (kept = undefined));
      }
      return kept.links;
    },
    load: async (signal) => toParts(await load(refs, owner, signal)),
  };
}

function toParts<Part>(prepared: Prepared<Part>): Part[] {
  if (prepared.ok) return prepared.parts;
  throw new PictureError(prepared.problems.join(" "));
}
