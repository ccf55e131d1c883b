import type { Hono } from "hono";
import type { Logger } from "pino";
import type { Adapter } from "../adapter.ts";
import { isLoopback } from "../config/variables.ts";
import type { Config } from "../config.ts";
import { createRelayRoutes } from "../http/relay.ts";
import type { Stores } from "../store/keyv.ts";
import { createOpenCopy } from "./picture-copies.ts";
import { createReferences, type References } from "./reference.ts";
import { createReadPicture } from "./reference-picture.ts";
import { createRelay } from "./relay.ts";

export interface PictureSourcesOptions {
  config: Pick<Config, "gateway" | "publicUrl" | "relaySecrets" | "limits">;
  adapterOf(platform: string): Adapter;
  stores: Pick<Stores, "open">;
  /** Signs the links where the configuration brings no key. */
  ownKey: string;
  /** Where this service is reached from this machine; undefined before it listens. */
  serviceUrl(): string | undefined;
  log: Logger;
}

/** What pictures may start from, and the routes under which the gateway fetches what is private. */
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
  const read = createReadPicture({ adapterOf: () => ({ openAttachment }) });
  const keyv = stores.open("relay");
  const relay = createRelay({ keys: [firstKey, ...furtherKeys], keyv, read, log, now: Date.now });
  const references = createReferences({
    adapterOf,
    relay,
    relayUrl: () => chooseRelayUrl(config, serviceUrl()),
    maxReferences: config.limits.maxReferences,
    read,
  });
  return { references, routes: createRelayRoutes(relay) };
}

/** A gateway on this machine reaches the service as it stands; any other one only under its public address. */
export function chooseRelayUrl(
  { gateway: { baseUrl }, publicUrl }: Pick<Config, "gateway" | "publicUrl">,
  serviceUrl: string | undefined,
): string | undefined {
  if (baseUrl === undefined) return serviceUrl;
  return publicUrl ?? (isLoopback(new URL(baseUrl).hostname) ? serviceUrl : undefined);
}
