import type { Hono } from "hono";
import type { Logger } from "pino";
import { NEVER, runWithin } from "../concurrency/deadlines.ts";
import type { Config } from "../config/config.ts";
import { createRelayRoutes } from "../http/relay.ts";
import { findFileProblem } from "../media/file-problem.ts";
import { createOpenCopy } from "../media/picture-copies.ts";
import { createReferences, type References } from "../media/reference.ts";
import { createReadPicture } from "../media/reference-picture.ts";
import { createRelay } from "../media/relay.ts";
import type { Adapter } from "../port/adapter.ts";
import type { AttachmentRef } from "../port/events.ts";
import { isLoopback } from "../port/variables.ts";
import type { Stores } from "../store/keyv.ts";

/** Longest that an image download waits for the platform to say whether the file still exists. */
const GONE_MS = 5_000;

export interface PictureSourcesOptions {
  config: Pick<Config, "gateway" | "publicUrl" | "relaySecrets" | "limits">;
  adapterOf(platform: string): Adapter;
  stores: Pick<Stores, "open">;
  /** Signs the links if the configuration has no key. */
  ownKey: string;
  /** The service's address on this machine; undefined before it listens. */
  serviceUrl(): string | undefined;
  log: Logger;
}

/** The source files of images, and the routes under which the gateway fetches private ones. */
export interface PictureSources {
  references: References;
  routes: Hono;
}

export function createPictureSources(options: PictureSourcesOptions): PictureSources {
  const { config, adapterOf, stores, ownKey, serviceUrl, log } = options;
  const [firstKey = ownKey, ...furtherKeys] = config.relaySecrets;
  const openCopy = createOpenCopy(stores.open);
  const openAttachment: Adapter["openAttachment"] = async (ref, signal) => {
    const copy = ref.isFleeting === true ? await openCopy(ref) : undefined;
    return copy ?? adapterOf(ref.platform).openAttachment(ref, signal);
  };
  const read = createReadPicture(openAttachment);
  const isGone = (ref: AttachmentRef) => askWhetherGone(openAttachment, ref);
  const keys: [string, ...string[]] = [firstKey, ...furtherKeys];
  const relay = createRelay({ keys, open: stores.open, read, isGone, log, now: Date.now });
  const references = createReferences({
    adapterOf,
    relay,
    relayUrl: () => chooseRelayUrl(config, serviceUrl()),
    maxReferences: config.limits.maxReferences,
    read,
  });
  return { references, routes: createRelayRoutes(relay) };
}

/** Opens a file and reads only its start: people delete attachments without the bot being notified. */
async function askWhetherGone(openAttachment: Adapter["openAttachment"], ref: AttachmentRef): Promise<boolean> {
  try {
    const look = async (signal: AbortSignal) => {
      // An iterator that never started would not close its source.
      const bytes = (await openAttachment(ref, signal))[Symbol.asyncIterator]();
      await bytes.next();
      await bytes.return?.();
    };
    await runWithin(GONE_MS, look, NEVER);
    return false;
  } catch (error) {
    return findFileProblem(error)?.kind === "gone";
  }
}

/** A gateway on this machine reaches the service directly; any other one only under its public address. */
export function chooseRelayUrl(
  { gateway: { baseUrl }, publicUrl }: Pick<Config, "gateway" | "publicUrl">,
  serviceUrl: string | undefined,
): string | undefined {
  if (baseUrl === undefined) return serviceUrl;
  return publicUrl ?? (isLoopback(new URL(baseUrl).hostname) ? serviceUrl : undefined);
}
