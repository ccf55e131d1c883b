import { setTimeout as sleep } from "node:timers/promises";
import { createKeyedTurns } from "../../../src/concurrency/keyed-queue.ts";
import type { Accept, InboundEvent } from "../../../src/port/events.ts";

/** Longest that what is being stored holds up the end. */
const STOP_MS = 5_000;

/** Hands events over in the order in which they came, channel by channel. */
export interface Delivery {
  /**
   * Calls `toEvents` at once, beside others. Resolves when all its events were taken over. Rejects when one was not:
   * Slack delivers that again.
   */
  enqueue(channelId: string, toEvents: () => Promise<readonly InboundEvent[]>): Promise<void>;
  /** Takes nothing more; resolves when nothing is under way, or after a while. */
  stop(): Promise<void>;
}

export function createDelivery(accept: Accept): Delivery {
  const inOrder = createKeyedTurns();
  const underWay = new Set<Promise<void>>();
  let isStopped = false;

  return {
    async enqueue(channelId, toEvents) {
      if (isStopped) throw new Error("This process takes no more events.");
      const reading = toEvents();
      const delivering = inOrder(channelId, async () => {
        for (const event of await reading) await accept(event);
      });
      const settling = Promise.allSettled([reading, delivering]).then(() => void underWay.delete(settling));
      underWay.add(settling);
      return delivering;
    },
    async stop() {
      isStopped = true;
      await Promise.race([Promise.all(underWay), sleep(STOP_MS, undefined, { ref: false })]);
    },
  };
}
