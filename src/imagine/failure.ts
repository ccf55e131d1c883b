import { GatewayError } from "../gateway/errors.ts";
import { isFiltered, NO_PICTURE } from "../gateway/image-answer.ts";
import { NO_WAY } from "../gateway/images.ts";
import { quoteName } from "../text/quote-name.ts";
import { describeEnding } from "../turn/endings.ts";
import type { PicturePart } from "./picture-job.ts";

/** Why a picture is not there, as a sentence of Markdown, and whether asking again may help. */
export interface PictureFailure {
  reason: string;
  canRetry: boolean;
}

/** The sentence says in plain words what its reader can do. */
export class PictureError extends Error {
  override readonly name = "PictureError";
}

/** The end of a picture that somebody stopped before it was drawn. */
export const STOPPED: PicturePart = { state: "failed", reason: "Stopped.", canRetry: true };

const FILTERED = "The AI service's safety filter refused this picture. Describe it differently.";
const AGAIN = "Press Retry to draw it again.";

/** Says why nothing was drawn, in plain words. Quotes only the model's own text. `now` is Unix milliseconds. */
export function describePictureFailure(error: unknown, model: string, now: number): PictureFailure {
  if (error instanceof PictureError) return { reason: error.message, canRetry: true };
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return { reason: `Interrupted: drawing took longer than is allowed. ${AGAIN}`, canRetry: true };
  }
  if (error instanceof GatewayError) {
    const own = describeOwn(error, model);
    if (own !== undefined) return own;
  }
  const { note, retry } = describeEnding({ error }, { model, now });
  return { reason: note.replace(/^_|_$/g, "").replace("Press Retry to ask again.", AGAIN), canRetry: retry };
}

/** The sentences that differ between a picture and an answer. */
function describeOwn(error: GatewayError, model: string): PictureFailure | undefined {
  const { kind, type, status, quote } = error;
  if (isFiltered(error)) return { reason: FILTERED, canRetry: true };
  if (type === NO_PICTURE) {
    return { reason: `The model drew no picture${quote} Put it in other words, or press Retry.`, canRetry: true };
  }
  if (type === NO_WAY) {
    const check = "The operator can find out why with `npm run doctor`.";
    return { reason: `The AI service does not draw with the model ${quoteName(model)}. ${check}`, canRetry: false };
  }
  if (status === 413) {
    return { reason: "Too large: the model does not take so much. Use fewer or smaller pictures.", canRetry: false };
  }
  if (kind === "malformed") {
    return { reason: `Interrupted: there is no picture in what the AI service sent. ${AGAIN}`, canRetry: true };
  }
  if (kind === "unauthorized" && status === 401) {
    const check = "The operator should check `GATEWAY_API_KEY` and `GATEWAY_IMAGE_KEY_HEADER`.";
    return { reason: `Refused: the AI service does not accept this bot's key for pictures. ${check}`, canRetry: false };
  }
  if (kind === "stalled" || kind === "interrupted") {
    return { reason: `Interrupted: the AI service broke off while it drew. ${AGAIN}`, canRetry: true };
  }
  return undefined;
}
