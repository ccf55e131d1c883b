import type { Gateway } from "../gateway/client.ts";
import type { GeneratedImage } from "../gateway/image-answer.ts";
import { DEFAULT_LIMITS } from "../gateway/limits.ts";
import { sniffImage } from "../media/sniff.ts";
import { ToolError } from "../tools/tool.ts";
import type { ShowPicture } from "../turn/answer-pictures.ts";
import type { PictureTurn } from "../turn/record.ts";
import { createRunningPictures, type RunningTurns } from "../turn/running.ts";
import { PictureError } from "./failure.ts";
import { type FindRefusal, type TurnSource, toTurn } from "./new-turn.ts";
import { createPictureRuns, type PictureRunsDeps } from "./picture-run.ts";

/** Creates the images that belong to an answer. The images form a turn, and their buttons contain that turn's id. */
export interface PicturesWithin {
  /** Creates images next to the answer. Resolves to a record with the result for each image. */
  draw(request: TurnRequest, onNotice: (text: string) => void, signal: AbortSignal): Promise<PictureTurn>;
  /** Shows an image that came with an answer, and stores it like a created image. Skips visible images. */
  show: ShowPicture;
}

/** An answer's request for images. A repeated id means the same request. */
interface TurnRequest extends Omit<TurnSource, "model"> {
  mustAsk: boolean;
}

export interface PicturesWithinDeps extends PictureRunsDeps {
  turns: Pick<RunningTurns, "whileRunning">;
  /** The default image model. Undefined: the bot creates no images. */
  model: string | undefined;
  findRefusal: FindRefusal;
  /** Resolves to undefined if the record is missing or the store is unavailable. */
  load(id: string): Promise<PictureTurn | undefined>;
}

export function createPicturesWithin(deps: PicturesWithinDeps): PicturesWithin {
  const { turns, model, findRefusal, load } = deps;

  /** Starts the turn, or continues it after another process. Resolves to a refusal if the turn is not permitted. */
  async function draw(
    source: TurnSource,
    work: (turn: PictureTurn) => Promise<void>,
  ): Promise<{ turn: PictureTurn } | { refusal: string }> {
    const known = await load(source.id);
    const turn = known ?? toTurn(source);
    const refusal = known === undefined ? await findRefusal(turn) : undefined;
    if (refusal !== undefined) return { refusal };
    const running = createRunningPictures(turn.id);
    running.open(turn);
    if (turn.phase !== "final") await turns.whileRunning(running, () => work(turn));
    return { turn };
  }

  return {
    async draw({ mustAsk, ...source }, onNotice, signal) {
      if (model === undefined) throw new Error("No image model is configured.");
      const runs = createPictureRuns(deps);
      const drawn = await draw({ ...source, model }, (turn) => runs.runWithin(turn, onNotice, signal, mustAsk));
      if ("turn" in drawn) return drawn.turn;
      throw new ToolError(`Not created: the person who asks isn't allowed to have that. ${drawn.refusal}`);
    },
    async show({ dataUrl, prompt, ...source }, signal) {
      const request = { prompt, count: 1, isSpoiler: false };
      const runs = createPictureRuns({ ...deps, gateway: givePicture(dataUrl) });
      const work = (turn: PictureTurn) => runs.runWithin(turn, () => {}, signal, false);
      const shown = await draw({ ...source, request, references: [] }, work);
      if ("refusal" in shown) return { reason: shown.refusal, canRetry: false };
      const [part] = shown.turn.parts;
      return part?.state === "failed" ? part : undefined;
    },
  };
}

/** Returns a gateway that immediately "creates" the image in a data URL. */
function givePicture(dataUrl: string): Pick<Gateway, "generateImage"> {
  return {
    generateImage: () => readGiven(dataUrl),
  };
}

async function readGiven(dataUrl: string): Promise<GeneratedImage> {
  const bytes = Buffer.from(dataUrl.slice(dataUrl.indexOf(",") + 1), "base64");
  if (bytes.length > DEFAULT_LIMITS.maxImageBytes) throw new PictureError("It is too large.");
  const mimeType = await sniffImage(bytes);
  if (mimeType === undefined) throw new PictureError("What the model sent can't be opened as an image.");
  // The answer already counted the image's tokens.
  return { bytes, mimeType, text: "", usage: { promptTokens: 0, completionTokens: 0 } };
}
