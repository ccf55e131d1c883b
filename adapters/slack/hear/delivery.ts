import { waitAtMost } from "../../../src/concurrency/deadlines.ts";
import { createKeyedQueue } from "../../../src/concurrency/keyed-queue.ts";
import type { Accept, InboundEvent } from "../../../src/port/events.ts";

/** Longest wait at the end for events that are being stored. */
const STOP_MS = 5_000;

/** Hands events over in the order in which they came, those of one key one after another. */
export interface Delivery {
  /**
   * Calls `toEvents` at once, before earlier ones are accepted. Resolves when all its events were accepted. Rejects when
   * one was not: Slack delivers that again.
   */
  enqueue(key: string, toEvents: () => Promise<readonly InboundEvent[]>): Promise<void>;
  /** Takes nothing more; resolves when nothing is under way, or after a while. */
  stop(): Promise<void>;
}

export function createDelivery(accept: Accept): Delivery {
  const queue = createKeyedQueue();
  let isStopped = false;

  return {
    async enqueue(key, toEvents) {
      if (isStopped) throw new Error("This process takes no more events.");
      const reading = toEvents();
      // It may fail while those before it are still being accepted.
      reading.catch(() => {});
      return queue.run(key, async () => {
        for (const event of await reading) await accept(event);
      });
    },
    async stop() {
      isStopped = true;
      await waitAtMost(queue.idle(), STOP_MS);
    },
  };
}
