import type { Logger } from "pino";
import { BoundedMap } from "../concurrency/bounded-map.ts";
import type { Adapter } from "../port/adapter.ts";
import type { InboundEvent } from "../port/events.ts";

const POST_MS = 10_000;
const MAX_TOLD = 1_000;

/** Tells the author of an event once, and alone where the platform can, that it waits. Never rejects. */
export type TellOutage = (event: InboundEvent, words: string) => Promise<void>;

export interface OutageNoticeDeps {
  adapterOf(platform: string): Pick<Adapter, "sink">;
  log: Logger;
}

/** Waits for no budget: those that processes share are out of reach together with the store. */
export function createTellOutage({ adapterOf, log }: OutageNoticeDeps): TellOutage {
  const toldKeys = new BoundedMap<string, true>(MAX_TOLD);

  return async ({ key, reply, author }, markdown) => {
    if (toldKeys.has(key)) return;
    toldKeys.set(key, true);
    try {
      const sink = adapterOf(reply.platform).sink({ ...reply, visibleTo: author.id });
      await sink.post({ markdown, buttons: [], streaming: false }, `${key}:away`, AbortSignal.timeout(POST_MS));
    } catch (error) {
      log.warn({ err: error, key }, "a person could not be told that the store is away");
    }
  };
}
