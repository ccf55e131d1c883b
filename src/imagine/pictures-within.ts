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

/** Pictures inside an answer. Each has its own turn, and its buttons contain that turn's id. */
export interface PicturesWithin {
  /** Creates pictures next to the answer. Resolves to the record with the result of each part. */
  draw(request: TurnRequest, onNotice: (text: string) => void, signal: AbortSignal): Promise<PictureTurn>;
  /**
   * Shows a picture that came with an answer, and stores it like a created one. Skips a picture that is already
   * visible.
   */
  show: ShowPicture;
}

/** A turn's request for pictures. The same id means the same request. */
interface TurnRequest extends Omit<TurnSource, "model"> {
  /** If true, the first request is made even while the model is paused. */
  mustAsk: boolean;
}

export interface PicturesWithinDeps extends PictureRunsDeps {
  turns: Pick<RunningTurns, "whileRunning">;
  /** The default model. If undefined, the bot creates no pictures. */
  model: string | undefined;
  findRefusal: FindRefusal;
  /** Also undefined if the store does not respond. */
  load(id: string): Promise<PictureTurn | undefined>;
}

export function createPicturesWithin(deps: PicturesWithinDeps): PicturesWithin {
  const { turns, model, findRefusal, load } = deps;

  /** Creates the turn, or continues an earlier process's turn. Resolves to a refusal if the turn is not permitted. */
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
    // A Stop reaches this turn through its answer.
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

/** Imitates a gateway that has created the picture in a data URL. */
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
  // The picture's tokens were counted with the answer.
  return { bytes, mimeType, text: "", usage: { promptTokens: 0, completionTokens: 0 } };
}
