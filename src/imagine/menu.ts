import { ASPECT_RATIOS, IMAGE_SIZES } from "../gateway/images.ts";
import type { ImagineMenu, ImagineOptions, ListModels } from "../port/catalogue.ts";
import { readPictureId } from "../port/ids.ts";
import { maySee } from "../turn/rights.ts";
import type { PictureJob } from "./picture-job.ts";
import { MAX_COUNT } from "./request.ts";
import type { RunningJobs } from "./running-jobs.ts";

export interface ImagineMenuDeps {
  running: Pick<RunningJobs, "find">;
  listModels: ListModels;
  maxReferences: number;
}

/** What the forms of the platforms offer, and how a picture that exists was asked for. */
export function createImagineMenu({ running, listModels, maxReferences }: ImagineMenuDeps): ImagineMenu {
  return {
    ratios: ASPECT_RATIOS,
    sizes: IMAGE_SIZES,
    maxCount: MAX_COUNT,
    maxReferences,
    listModels,
    async describe(pictureId, by, signal) {
      const id = readPictureId(pictureId);
      if (id === undefined) return undefined;
      const job = await running.find(id.jobId);
      signal.throwIfAborted();
      // A person who sees a picture may be quicker than its record; the form that is sent waits for it.
      const state = job?.parts[id.part - 1]?.state;
      if (job === undefined || !maySee(by, job) || (state !== "done" && state !== "pending")) return undefined;
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
