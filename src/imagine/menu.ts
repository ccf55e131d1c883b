import { ASPECT_RATIOS, IMAGE_SIZES } from "../gateway/image-ways.ts";
import type { ImagineMenu, ImagineOptions, ListModels } from "../port/catalogue.ts";
import { readPictureId } from "../port/ids.ts";
import type { PictureTurn } from "../turn/record.ts";
import { maySee } from "../turn/rights.ts";
import type { FindPicture } from "./find-picture.ts";
import { MAX_COUNT } from "./request.ts";

export interface ImagineMenuDeps extends Pick<FindPicture, "find"> {
  listModels: ListModels;
  maxReferences: number;
}

/** Returns the choices for the platforms' image forms, and the request of an existing image. */
export function createImagineMenu({ find, listModels, maxReferences }: ImagineMenuDeps): ImagineMenu {
  return {
    ratios: ASPECT_RATIOS,
    sizes: IMAGE_SIZES,
    maxCount: MAX_COUNT,
    maxReferences,
    listModels,
    async describe(pictureId, by, signal) {
      const id = readPictureId(pictureId);
      if (id === undefined) return undefined;
      const turn = await find(id.turnId);
      signal.throwIfAborted();
      // People can press a button before the record contains the image. The submitted form then waits for the record.
      const state = turn?.parts[id.part - 1]?.state;
      if (turn === undefined || !maySee(by, turn) || (state !== "done" && state !== "pending")) return undefined;
      return { prompt: turn.prompt, options: toOptions(turn, pictureId) };
    },
  };
}

function toOptions({ ratio, size, model, isSpoiler }: PictureTurn, basis: string): ImagineOptions {
  return {
    ...(ratio !== undefined && { ratio }),
    ...(size !== undefined && { size }),
    ...(isSpoiler && { spoiler: "true" }),
    model,
    basis,
  };
}
