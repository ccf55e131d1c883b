import { setTimeout as sleep } from "node:timers/promises";
import type { Accept, InboundEvent } from "../../../src/port/events.ts";

/** Longest that what is being stored holds up the end. */
const STOP_MS = 5_000;

/** Hands events over in the order in which they came, channel by channel. */
export interface Delivery {
  /** Begins at once to find out what it means, beside others. Resolves when everything was taken over. Rejects when something was not: Slack delivers that again. */
  enqueue(channelId: string, toEvents: () => Promise<readonly InboundEvent[]>): Promise<void>;
  /** Takes nothing more; resolves when nothing is under way, or after a while. */
  stop(): Promise<void>;
}

export function createDelivery(accept: Accept): Delivery {
  const tails = new Map<string, Promise<void>>();
  let isStopped = false;

  async function run(before: Promise<void>, toEvents: () => Promise<readonly InboundEvent[]>): Promise<void> {
    const [events] = await Promise.all([toEvents(), before]);
    for (const event of events) await accept(event);
  }

  return {
    async enqueue(channelId, toEvents) {
      if (isStopped) throw new Error("This process takes no more events.");
      const delivering = run(tails.get(channelId) ?? Promise.resolve(), toEvents);
      // What failed does not hold up what comes after it.
      const tail = delivering
        .catch(() => {})
        .finally(() => {
          if (tails.get(channelId) === tail) tails.delete(channelId);
        });
      tails.set(channelId, tail);
      return delivering;
    },
    async stop() {
      isStopped = true;
      await Promise.race([Promise.all(tails.values()), sleep(STOP_MS, undefined, { ref: false })]);
    },
  };
}
