import type { Gateway } from "../gateway/client.ts";
import type { GeneratedImage } from "../gateway/image-answer.ts";
import { DEFAULT_LIMITS } from "../gateway/limits.ts";
import { sniffImage } from "../media/sniff.ts";
import type { ShowPicture } from "../turn/answer-pictures.ts";
import { PictureError } from "./failure.ts";
import type { FindJobRefusal } from "./job-refusal.ts";
import { createJobRuns, type JobRunDeps } from "./job-run.ts";
import { toJob } from "./new-job.ts";
import type { PictureJob } from "./picture-job.ts";
import type { RunningJobs } from "./running-jobs.ts";

export interface ShowGivenDeps extends JobRunDeps {
  running: Pick<RunningJobs, "whileRunning">;
  findRefusal: FindJobRefusal;
  /** Undefined also if the store does not answer. */
  find(jobId: string): Promise<PictureJob | undefined>;
}

/** Shows pictures that came as data URLs in the answers of a chat model, each as a job whose picture is already there. */
export function createShowGiven({ running, findRefusal, find, ...deps }: ShowGivenDeps): ShowPicture {
  return async ({ dataUrl, model, prompt, ...place }, signal) => {
    const known = await find(place.id);
    const request = { prompt, count: 1, isSpoiler: false };
    const job = known ?? toJob({ ...place, request, model, references: [] });
    const refusal = known === undefined ? await findRefusal(job) : undefined;
    if (refusal !== undefined) return { reason: refusal, canRetry: false };
    const runs = createJobRuns({ ...deps, gateway: givePicture(dataUrl) });
    if (!job.isOver) await running.whileRunning(job, () => runs.runWithin(job, () => {}, signal, false));
    const [part] = job.parts;
    return part?.state === "failed" ? part : undefined;
  };
}

/** Answers like a gateway that drew the picture. */
function givePicture(dataUrl: string): Pick<Gateway, "generateImage"> {
  return {
    async generateImage(_, __, options) {
      const image = await readGiven(dataUrl);
      await options?.beforeSend?.();
      return image;
    },
  };
}

async function readGiven(dataUrl: string): Promise<GeneratedImage> {
  const bytes = Buffer.from(dataUrl.slice(dataUrl.indexOf(",") + 1), "base64");
  if (bytes.length > DEFAULT_LIMITS.maxImageBytes) throw new PictureError("It is too large.");
  const mimeType = await sniffImage(bytes);
  if (mimeType === undefined) throw new PictureError("What the model sent can't be opened as a picture.");
  // Its tokens were counted with the answer.
  return { bytes, mimeType, text: "", usage: { promptTokens: 0, completionTokens: 0 } };
}
