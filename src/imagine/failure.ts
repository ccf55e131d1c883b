import { GatewayError } from "../gateway/errors.ts";
import { NO_PICTURE } from "../gateway/images.ts";
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

const AGAIN = "Press Retry to draw it again.";

/** Says why nothing was drawn, in plain words. Quotes only the model's own text. `now` is Unix milliseconds. */
export function describePictureFailure(error: unknown, model: string, now: number): PictureFailure {
  if (error instanceof PictureError) return { reason: error.message, canRetry: true };
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return { reason: `Interrupted: drawing took longer than is allowed. ${AGAIN}`, canRetry: true };
  }
  if (error instanceof GatewayError) {
    const own = describeOwn(error);
    if (own !== undefined) return own;
  }
  const { note, retry } = describeEnding({ error }, { model, now });
  return { reason: note.replace(/^_|_$/g, "").replace("Press Retry to ask again.", AGAIN), canRetry: retry };
}

/** The sentences that differ between a picture and an answer. */
function describeOwn({ kind, type, code = "", status, message }: GatewayError): PictureFailure | undefined {
  if (type === NO_PICTURE) return { reason: `${message} Put it in other words, or press Retry.`, canRetry: true };
  if (/content_(filter|policy)|safety/i.test(`${type} ${code}`)) {
    return { reason: "Withheld: a content filter refused this picture. Put it in other words.", canRetry: true };
  }
  if (status === 413) {
    return { reason: "Too large: the model does not take so much. Use fewer or smaller pictures.", canRetry: false };
  }
  if (kind === "malformed") {
    return { reason: `Interrupted: there is no picture in what the gateway sent. ${AGAIN}`, canRetry: true };
  }
  if (kind === "unauthorized" && status === 401) {
    const check = "The operator should check `GATEWAY_API_KEY` and `GATEWAY_IMAGE_KEY_HEADER`.";
    return { reason: `Refused: the gateway does not accept this bot's key for pictures. ${check}`, canRetry: false };
  }
  if (kind === "stalled" || kind === "interrupted") {
    return { reason: `Interrupted: the gateway broke off while it drew. ${AGAIN}`, canRetry: true };
  }
  return undefined;
}
