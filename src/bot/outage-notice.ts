import { BoundedMap } from "../concurrency/bounded-map.ts";
import type { InboundEvent } from "../port/events.ts";
import { NO_RIGHT } from "../port/right.ts";
import type { Services } from "../services/services.ts";

const POST_MS = 10_000;
const MAX_NOTIFIED = 1_000;

/** Tells an event's author once that the event waits, privately if the platform supports that. Never rejects. */
export type NotifyOutage = (event: InboundEvent, words: string) => Promise<void>;

/**
 * Ignores rate limits, because they are unknown while the store is down. Checks no ownership, because only the store
 * could confirm it.
 */
export function createNotifyOutage({ adapterOf, log }: Services): NotifyOutage {
  const notifiedKeys = new BoundedMap<string, true>(MAX_NOTIFIED);

  return async ({ key, reply, author }, markdown) => {
    if (notifiedKeys.has(key)) return;
    notifiedKeys.set(key, true);
    try {
      const sink = adapterOf(reply.platform).sink({ ...reply, visibleTo: author.id }, NO_RIGHT);
      await sink.post({ markdown, buttons: [], streaming: false }, `${key}:away`, AbortSignal.timeout(POST_MS));
    } catch (error) {
      log.warn({ err: error, key }, "an outage notice could not be delivered");
    }
  };
}
