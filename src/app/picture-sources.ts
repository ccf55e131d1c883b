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

/** An image download waits at most this long for the platform to say whether it still has the file. */
const GONE_MS = 5_000;

export interface PictureSourcesOptions {
  config: Pick<Config, "gateway" | "publicUrl" | "relaySecrets" | "limits">;
  adapterOf(platform: string): Adapter;
  stores: Pick<Stores, "open">;
  /** Signs the links if no key is configured. */
  ownKey: string;
  /** The service's address on this machine; undefined until the server listens. */
  serviceUrl(): string | undefined;
  log: Logger;
}

/** Opens images for the gateway, and serves private images under routes from which the gateway fetches them. */
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

/**
 * Resolves to true if the platform no longer has a file. Reads only the start of the file. The bot gets no event when
 * someone deletes an attachment.
 */
async function askWhetherGone(openAttachment: Adapter["openAttachment"], ref: AttachmentRef): Promise<boolean> {
  try {
    const look = async (signal: AbortSignal) => {
      // Read one chunk, because an iterator that never started does not close its source.
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

/** A gateway on this machine reaches the service directly. Other gateways need the public address. */
export function chooseRelayUrl(
  { gateway: { baseUrl }, publicUrl }: Pick<Config, "gateway" | "publicUrl">,
  serviceUrl: string | undefined,
): string | undefined {
  if (baseUrl === undefined) return serviceUrl;
  return publicUrl ?? (isLoopback(new URL(baseUrl).hostname) ? serviceUrl : undefined);
}
