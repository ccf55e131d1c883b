import type { Logger } from "pino";
import { untilAborted } from "../concurrency/deadlines.ts";
import type { Gateway } from "../gateway/client.ts";
import type { ListModels } from "../port/catalogue.ts";
import { editDistance } from "../text/edit-distance.ts";

/** The list is cached this long, because people request it repeatedly while they browse models or type a name. */
const KEPT_MS = 5 * 60_000;
/** Timeout for a request for the list. */
const LIST_MS = 10_000;
/** Longer ids are ignored, because no one types or chooses such an id. */
const MAX_ID_CHARS = 100;
const MAX_NEAR = 3;
const MAX_SLIPS = 3;
/** Matches names of models that cannot chat. The list contains only names, so only the name can show this. */
const DRAWS =
  /(^|[^a-z])(images?|imagen|imagine|dall-e|flux|banana|seedream|sdxl|stable-diffusion|midjourney|ideogram|recraft)([^a-z]|$)/i;
const NO_CHAT =
  /(^|[^a-z])(videos?|embed|embeddings?|rerank|reranker|whisper|transcribe|tts|speech|moderation)([^a-z]|$)/i;

export interface ModelLists {
  chat: ListModels;
  /** Lists the image models; empty if the operator configured none. */
  images: ListModels;
}

export interface ModelListsOptions {
  gateway: Pick<Gateway, "listModels">;
  /** The configured models come first in the lists, even if the gateway's list lacks them. */
  chatModel: string;
  imageModel: string | undefined;
  log: Logger;
  /** Unix milliseconds. */
  now(): number;
}

/** Requests the list at most once in five minutes. If a request fails, uses the old list. */
export function createModelLists({ gateway, chatModel, imageModel, log, now }: ModelListsOptions): ModelLists {
  const listIds = createIdList(gateway, log, now);
  return {
    chat: async (signal) => [...new Set([chatModel, ...(await listIds(signal)).filter(isForChat)])],
    images: async (signal) =>
      imageModel === undefined ? [] : [...new Set([imageModel, ...(await listIds(signal)).filter(isForImages)])],
  };
}

function createIdList(gateway: Pick<Gateway, "listModels">, log: Logger, now: () => number): ListModels {
  let kept: { models: readonly string[]; until: number } | undefined;
  let asking: Promise<readonly string[]> | undefined;

  async function ask(): Promise<readonly string[]> {
    try {
      const signal = AbortSignal.timeout(LIST_MS);
      const ids = await untilAborted(gateway.listModels(signal), signal);
      const models = ids.filter((id) => id.length <= MAX_ID_CHARS);
      kept = { models, until: now() + KEPT_MS };
      return models;
    } catch (err) {
      log.warn({ err }, "the gateway's models could not be listed");
      if (kept === undefined) throw err;
      return kept.models;
    } finally {
      asking = undefined;
    }
  }

  return (signal) => {
    if (kept !== undefined && now() < kept.until) return Promise.resolve(kept.models);
    asking ??= ask();
    // If one caller aborts, the request continues for the others.
    return untilAborted(asking, signal);
  };
}

function isForChat(id: string): boolean {
  return !NO_CHAT.test(id) && !DRAWS.test(id);
}

function isForImages(id: string): boolean {
  return !NO_CHAT.test(id) && DRAWS.test(id);
}

/** Finds the model with this name. Ignores case if that leaves only one match. Pure. */
export function findModel(name: string, models: readonly string[]): string | undefined {
  const alike = models.filter((model) => model.toLowerCase() === name.toLowerCase());
  return alike.find((model) => model === name) ?? (alike.length === 1 ? alike[0] : undefined);
}

/** Finds the models that were probably meant by an unknown name, most likely first. Pure. */
export function nearModels(name: string, models: readonly string[]): string[] {
  const typed = name.toLowerCase();
  if (typed === "" || typed.length > MAX_ID_CHARS) return [];
  const slips = Math.min(MAX_SLIPS, Math.floor(typed.length / 3));
  return models
    .map((model) => ({ model, distance: distanceOf(typed, model.toLowerCase(), slips) }))
    .filter(({ distance }) => distance <= slips)
    .sort((a, b) => a.distance - b.distance)
    .slice(0, MAX_NEAR)
    .map(({ model }) => model);
}

/** Returns the edit distance: 0 if one name contains the other, infinite if the lengths differ by more than `slips`. */
function distanceOf(typed: string, model: string, slips: number): number {
  if (model.includes(typed) || typed.includes(model)) return 0;
  return Math.abs(typed.length - model.length) > slips ? Infinity : editDistance(typed, model);
}
