import { isAborted } from "../concurrency/abort.ts";
import { mapBounded, runWithin } from "../concurrency/deadlines.ts";
import { retry } from "../concurrency/retry.ts";
import type { Fallback, Gateway, RetryNotice } from "../gateway/client.ts";
import { isUndrawn, isUnsent } from "../gateway/errors.ts";
import type { GeneratedImage, ImageUsage } from "../gateway/image-answer.ts";
import type { ImageRequest, LinkedReference, ReferenceSource } from "../gateway/image-ways.ts";
import { fitPicture } from "../media/picture.ts";
import { describeReferenceFailure, type Prepared, type References } from "../media/reference.ts";
import type { ImageMimeType } from "../media/sniff.ts";
import { SinkError } from "../port/errors.ts";
import { toPictureId } from "../port/ids.ts";
import type { Right } from "../port/right.ts";
import type { OutboundFile, Posted, ReplySink } from "../port/sink.ts";
import type { Unspent } from "../quota/cost.ts";
import { callPlatform, isRefusal } from "../reply/platform-call.ts";
import { describeLack } from "../text/quote-name.ts";
import type { PicturePart, PictureTurn } from "../turn/record.ts";
import { describePictureFailure, PictureError, toStopped } from "./failure.ts";
import { toAltText, toCaption, toFileName } from "./wording.ts";

const MAX_PARALLEL = 2;
/** Maximum time for one image, including retries after the gateway refused a request. */
const PART_TIMEOUT_MS = 300_000;
/** Maximum time for a whole turn: enough for two rounds of two parallel images, plus uploads. */
const JOB_TIMEOUT_MS = 900_000;
/** Maximum time that an image waits for earlier images in the channel and for its upload. */
const UPLOAD_TIMEOUT_MS = 180_000;
/** Links to reference images work longer than one request lasts. Later requests get new links. */
const LINKS_KEPT_MS = 180_000;
/** More pixels than any model creates. */
const MAX_PIXELS = 100_000_000;
const MAX_SIDE = 16_384;

/** Pauses before an upload is retried, unless the platform's rate limit names another time. */
const PAUSES_MS = [500, 2_000, 5_000, 10_000] as const;
/** The longest pause before an upload is retried, even if the platform asks for more. */
const MAX_WAIT_MS = 30_000;

const NOT_TAKEN = "The image was created, but I couldn't post it here.";

export interface DrawingDeps {
  right: Right;
  gateway: Pick<Gateway, "generateImage">;
  references: Pick<References, "prepare" | "load">;
  /**
   * Called for each finished image. If the image was stopped, `error` is the reason of `stop`. The turn continues when
   * the promise resolves.
   */
  onEnd(turn: PictureTurn, number: number, error: unknown): Promise<void>;
  /** Reserves quota for an image before its request. Rejects if a limit does not allow the image. */
  reserve(turn: PictureTurn, number: number, signal: AbortSignal): Promise<PictureReservation>;
}

export interface PictureReservation {
  /** Counts what a request used. */
  settle(spent: { pictures: number; usage?: ImageUsage | undefined } | Unspent): Promise<void>;
}

export interface Drawing {
  turn: PictureTurn;
  sink: ReplySink;
  /** Called with a notice to show while an image is delayed, then with "" to clear it. */
  onNotice(text: string): void;
  /** If true, makes the first request even while the model is paused. */
  mustAsk: boolean;
  /** Ends the turn early: finished images are shown, and the others count as stopped. */
  stop: AbortSignal;
}

/**
 * Creates and shows every pending image, each in its own message. A failure ends only its own image. Rejects only with
 * the signal's reason; a later call then continues with the pending images and finds those that are already visible.
 */
export async function drawParts(deps: DrawingDeps, drawing: Drawing, signal: AbortSignal): Promise<void> {
  const { turn } = drawing;
  const references = createSource(deps.references, turn);
  const deadlineMs = performance.now() + JOB_TIMEOUT_MS;
  const numbers = turn.parts.flatMap(({ state }, index) => (state === "pending" ? [index + 1] : []));
  await mapBounded(numbers, MAX_PARALLEL, async (number) => {
    // Return instead of rejecting, because a rejection would abandon the other images.
    if (signal.aborted) return;
    const timeoutMs = Math.max(1, Math.min(PART_TIMEOUT_MS, deadlineMs - performance.now()));
    let failure: unknown;
    let end: PicturePart;
    try {
      end = await drawPart(deps, drawing, { number, references, timeoutMs }, signal);
    } catch (error) {
      if (signal.aborted) return;
      failure = error;
      end = drawing.stop.aborted && error === drawing.stop.reason ? toStopped(drawing.stop) : toFailed(turn, error);
    }
    turn.parts[number - 1] = end;
    await deps.onEnd(turn, number, failure);
  });
  signal.throwIfAborted();
}

function toFailed(turn: PictureTurn, error: unknown): PicturePart {
  const reason = describeReferenceFailure(error, turn.references);
  if (reason !== undefined) return { state: "failed", reason, canRetry: true };
  return { state: "failed", ...describePictureFailure(error, turn.model, Date.now()) };
}

interface Step {
  number: number;
  references: ReferenceSource | undefined;
  timeoutMs: number;
}

async function drawPart(
  { right, gateway, reserve }: DrawingDeps,
  { turn, sink, onNotice, mustAsk, stop }: Drawing,
  { number, references, timeoutMs }: Step,
  signal: AbortSignal,
): Promise<PicturePart> {
  stop.throwIfAborted();
  const onRetry = ({ waitMs }: RetryNotice) => {
    onNotice(`The AI service is busy. I'll ask again in ${Math.max(1, Math.round(waitMs / 1_000))} s.`);
  };
  let isElsewhere = false;
  const onFallback = (fallback: Fallback | undefined) => {
    isElsewhere = fallback !== undefined;
    onNotice(isElsewhere ? "The AI service isn't answering. I'm trying the second one." : "I'm asking it again.");
  };
  const { settle } = await reserve(turn, number, AbortSignal.any([signal, stop]));
  const draw = (signal: AbortSignal) =>
    gateway.generateImage(toRequest(turn, references), signal, { onRetry, onFallback, mustAsk });
  let image: GeneratedImage;
  try {
    image = await runWithin(timeoutMs, draw, AbortSignal.any([signal, stop]));
  } catch (error) {
    // The gateway may have created the image before the request was interrupted, so the image counts.
    if (error instanceof PictureError || isUnsent(error)) await settle("unsent");
    else await settle(isUndrawn(error) ? "refused" : { pictures: 1 });
    throw error;
  }
  await settle({ pictures: 1, usage: image.usage });
  onNotice("");
  const tokens = image.usage && image.usage.promptTokens + image.usage.completionTokens;
  const file = await toFile(turn, number, image, sink.limits.maxFileBytes, signal);
  const caption = toCaption(turn, number, { text: image.text, tokens, isElsewhere, unmet: image.unmet }, sink.limits);
  const upload = (signal: AbortSignal) => sink.upload([file], caption, toPictureId(turn.id, number), signal);
  const posted = await show(right, sink, upload, signal);
  return { state: "done", messageId: posted.id, attachment: posted.attachments?.[0], text: image.text, tokens };
}

/** Rejects with a `PictureError` if the platform refuses the image. */
async function show(
  right: Right,
  sink: ReplySink,
  upload: (signal: AbortSignal) => Promise<Posted>,
  signal: AbortSignal,
): Promise<Posted> {
  let latest: Promise<Posted> | undefined;
  const call = (signal: AbortSignal) => (latest = upload(signal));
  try {
    const options = { pausesMs: PAUSES_MS, mayPass: (error: unknown) => !isRefusal(error), askedMs };
    const posted = await retry(() => runWithin(UPLOAD_TIMEOUT_MS, call, signal), options, signal);
    signal.throwIfAborted();
    return posted;
  } catch (cause) {
    if (isAborted(signal, "forgotten") && latest !== undefined) await takeBack(right, sink, latest);
    signal.throwIfAborted();
    throw new PictureError(describeUntaken(cause), { cause });
  }
}

function askedMs(error: unknown): number | undefined {
  const askedMs = error instanceof SinkError ? error.retryAfterMs : undefined;
  return askedMs && Math.min(askedMs, MAX_WAIT_MS);
}

function describeUntaken(cause: unknown): string {
  const missing = cause instanceof SinkError ? cause.missing : undefined;
  if (missing === undefined) return `${NOT_TAKEN} Press Retry to create it again.`;
  return `${NOT_TAKEN} ${describeLack(missing)} Then press Retry.`;
}

/** Removes a message after its upload has finished. Ignores failures. */
async function takeBack(right: Right, sink: ReplySink, uploading: Promise<Posted>): Promise<void> {
  try {
    const { id } = await callPlatform(right, () => uploading);
    await callPlatform(right, (signal) => sink.remove(id, signal));
  } catch {
    // The message does not exist, or the platform did not say whether it does.
  }
}

function toRequest({ model, ratio, size, ...turn }: PictureTurn, references?: ReferenceSource): ImageRequest {
  return {
    model,
    prompt: toInstruction(turn),
    ...(references !== undefined && { references }),
    ...(ratio !== undefined && { aspectRatio: ratio }),
    ...(size !== undefined && { imageSize: size }),
  };
}

function toInstruction({ prompt, change }: Pick<PictureTurn, "prompt" | "change">): string {
  if (change === "vary") {
    return `${prompt}\n\nThe first image was created from this prompt. Create a variation of it: the same subject and style, but another composition.`;
  }
  if (change === "upscale") {
    return `${prompt}\n\nThe first image was created from this prompt. Create it again exactly as it is, only larger and with finer detail.`;
  }
  return prompt;
}

async function toFile(
  turn: PictureTurn,
  number: number,
  image: GeneratedImage,
  maxBytes: number,
  signal: AbortSignal,
): Promise<OutboundFile> {
  const fitting = await fit(image, maxBytes, ownerOf(turn), signal);
  return {
    name: toFileName(turn, number, fitting.mimeType),
    contentType: fitting.mimeType,
    bytes: fitting.bytes,
    altText: toAltText(turn),
    isSpoiler: turn.isSpoiler,
  };
}

/** Returns the image unchanged if the platform accepts a file of its size. Otherwise encodes it again. */
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
  throw new PictureError("The image was created, but it's too large to post here. Ask for a smaller size.");
}

/** Returns the asker as the owner of the turn's files. */
function ownerOf({ reply, author }: PictureTurn): string {
  return `${reply.platform}:${author.id}`;
}

/**
 * Creates the source of reference images for all parallel requests of a turn. The requests share the links, and each
 * keeps the bytes only while it runs.
 */
function createSource({ prepare, load }: DrawingDeps["references"], turn: PictureTurn): ReferenceSource | undefined {
  const refs = turn.references;
  if (refs.length === 0) return undefined;
  const owner = { turnId: turn.id, platform: turn.reply.platform, authorId: turn.author.id };
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
