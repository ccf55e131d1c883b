import { ASPECT_RATIOS, IMAGE_SIZES } from "../gateway/image-request.ts";
import type { ImagineMenu, ImagineOptions } from "../imagine-menu.ts";
import type { ListModels } from "../model-list.ts";
import type { JobStore } from "./job-store.ts";
import { readPictureId } from "./picture-id.ts";
import type { PictureJob } from "./picture-job.ts";
import { MAX_COUNT } from "./wish.ts";

export interface ImagineMenuDeps {
  jobs: Pick<JobStore, "load">;
  listModels: ListModels;
  maxReferences: number;
}

/** What the forms of the platforms offer, and how a picture that exists was asked for. */
export function createImagineMenu({ jobs, listModels, maxReferences }: ImagineMenuDeps): ImagineMenu {
  return {
    ratios: ASPECT_RATIOS,
    sizes: IMAGE_SIZES,
    maxCount: MAX_COUNT,
    maxReferences,
    listModels,
    async describe(pictureId, signal) {
      const id = readPictureId(pictureId);
      if (id === undefined) return undefined;
      const job = await jobs.load(id.jobId);
      signal.throwIfAborted();
      if (job?.parts[id.part - 1]?.state !== "done") return undefined;
      return { prompt: job.prompt, options: toOptions(job, pictureId) };
    },
  };
}

function toOptions({ ratio, size, model, isSpoiler }: PictureJob, basis: string): ImagineOptions {
  return {
    ...(ratio !== undefined && { ratio }),
    ...(size !== undefined && { size }),
    ...(isSpoiler && { spoiler: "true" }),
    model,
    basis,
  };
}
