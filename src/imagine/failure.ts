import { GatewayError } from "../gateway/errors.ts";
import { isFiltered, NO_PICTURE } from "../gateway/image-answer.ts";
import { NO_WAY } from "../gateway/images.ts";
import { quoteName } from "../text/quote-name.ts";
import { describeEnding } from "../turn/endings.ts";
import type { PicturePart } from "../turn/record.ts";

/** Why an image is missing, as a Markdown sentence, and whether a retry can help. */
export interface PictureFailure {
  reason: string;
  canRetry: boolean;
}

/** Its message is shown to people and says what to do. */
export class PictureError extends Error {
  override readonly name = "PictureError";
}

const GIVEN_UP = "I tried several times and couldn't finish this.";

/** Returns the state of an image that was stopped or given up before it was created. */
export function toStopped({ reason }: AbortSignal): PicturePart {
  return { state: "failed", reason: reason === "given-up" ? GIVEN_UP : "Stopped.", canRetry: true };
}

const FILTERED = "The AI service's safety filter blocked this image. Describe it differently.";
const AGAIN = "Press Retry to create it again.";

/** Says in plain words why an image is missing. Quotes only the model's own text. `now` is in Unix milliseconds. */
export function describePictureFailure(error: unknown, model: string, now: number): PictureFailure {
  if (error instanceof PictureError) return { reason: error.message, canRetry: true };
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return { reason: `The image took longer than allowed. ${AGAIN}`, canRetry: true };
  }
  if (error instanceof GatewayError) {
    const own = describeOwn(error, model);
    if (own !== undefined) return own;
  }
  const { note, retry } = describeEnding({ error }, { model, now });
  return { reason: note.replace(/^_|_$/g, "").replace("Press Retry to ask again.", AGAIN), canRetry: retry };
}

/** Describes failures that need another sentence for an image than for an answer. */
function describeOwn(error: GatewayError, model: string): PictureFailure | undefined {
  const { kind, type, status, quote } = error;
  if (isFiltered(error)) return { reason: FILTERED, canRetry: true };
  if (type === NO_PICTURE) {
    return { reason: `The model created no image${quote} Rephrase your request, or press Retry.`, canRetry: true };
  }
  if (type === NO_WAY) {
    const check = "The operator can find out why with `npm run doctor`.";
    return {
      reason: `The AI service can't create images with the model ${quoteName(model)}. ${check}`,
      canRetry: false,
    };
  }
  if (status === 413) {
    return { reason: "That's more than the model accepts. Use fewer or smaller images.", canRetry: false };
  }
  if (kind === "malformed") {
    return { reason: `The AI service sent something that is not an image. ${AGAIN}`, canRetry: true };
  }
  if (kind === "unauthorized" && status === 401) {
    const check = "The operator can check `GATEWAY_API_KEY` and `GATEWAY_IMAGE_KEY_HEADER`.";
    return { reason: `The AI service doesn't accept this bot's key for images. ${check}`, canRetry: false };
  }
  if (kind === "stalled" || kind === "interrupted") {
    return { reason: `The AI service broke off before the image was finished. ${AGAIN}`, canRetry: true };
  }
  return undefined;
}
