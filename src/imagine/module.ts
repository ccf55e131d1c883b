import type { Logger } from "pino";
import type { Gateway } from "../gateway/client.ts";
import { ASPECT_RATIOS, IMAGE_SIZES } from "../gateway/image-ways.ts";
import type { History } from "../history/history.ts";
import { createPictureCopies } from "../media/picture-copies.ts";
import type { References } from "../media/reference.ts";
import { createReadPicture } from "../media/reference-picture.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Access } from "../policy/access.ts";
import type { Adapter } from "../port/adapter.ts";
import type { ImagineMenu, ImagineOptions, ListModels } from "../port/catalogue.ts";
import { readPictureId } from "../port/ids.ts";
import type { Quota } from "../quota/quota.ts";
import type { SinkOf } from "../reply/paced-sink.ts";
import type { Stores } from "../store/keyv.ts";
import type { Tool } from "../tools/tool.ts";
import { maySee } from "../turn/rights.ts";
import { createGenerateImage } from "./generate-image.ts";
import { createImagine, type Imagine } from "./imagine.ts";
import { createFindJobRefusal } from "./job-refusal.ts";
import { createJobStore, type JobStore } from "./job-store.ts";
import type { PictureJob } from "./picture-job.ts";
import { MAX_COUNT } from "./request.ts";
import { createRunningJobs, type RunningJobs } from "./running-jobs.ts";

export interface ImagineModuleOptions {
  stores: Pick<Stores, "open" | "inTurn">;
  ttlMs: number;
  history: History;
  gateway: Gateway;
  references: References;
  /** Those that draw. */
  listModels: ListModels;
  /** The usual one; undefined: nothing is drawn. */
  model: string | undefined;
  maxReferences: number;
  access: Pick<Access, "judge">;
  adapterOf(platform: string): Adapter;
  sinkOf: SinkOf;
  quota: Quota;
  metrics: Metrics;
  /** Told of every picture that is drawn, or failed to be. */
  onProgress(jobId: string): void;
  log: Logger;
}

/** Everything about pictures, put together. */
export interface ImagineModule {
  jobs: JobStore;
  imagine: Imagine;
  menu: ImagineMenu;
  /** Lets a chat model draw; empty where nothing is drawn. */
  tools: readonly Tool[];
}

export function createImagineModule({
  stores,
  ttlMs,
  adapterOf,
  access,
  ...deps
}: ImagineModuleOptions): ImagineModule {
  const { history, model, listModels, maxReferences, log } = deps;
  const { open, inTurn } = stores;
  const read = createReadPicture(async (ref, signal) => adapterOf(ref.platform).openAttachment(ref, signal));
  const copies = createPictureCopies({ open, inTurn, ttlMs, read, log });
  const jobs = createJobStore({ open, inTurn, ttlMs, copies, links: deps.references, log });
  const running = createRunningJobs(jobs);
  const imagine = createImagine({
    ...deps,
    jobs,
    running,
    copies,
    links: deps.references,
    findRefusal: createFindJobRefusal(access),
  });
  return {
    jobs,
    imagine,
    menu: createImagineMenu({ running, listModels, maxReferences }),
    tools: model === undefined ? [] : [createGenerateImage({ imagine, history, maxReferences })],
  };
}

interface ImagineMenuDeps {
  running: Pick<RunningJobs, "find">;
  listModels: ListModels;
  maxReferences: number;
}

/** Gives the platforms' forms their choices, and tells how an existing picture was asked for. */
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
