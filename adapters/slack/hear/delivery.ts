import { waitAtMost } from "../../../src/concurrency/deadlines.ts";
import { createKeyedQueue } from "../../../src/concurrency/keyed-queue.ts";
import type { Accept, InboundEvent } from "../../../src/port/events.ts";

const STOP_MS = 5_000;

/** Passes events on in the order of their arrival. Events with the same key wait for each other. */
export interface Delivery {
  /**
   * Calls `toEvents` at once, even before earlier events are accepted. Rejects if one of the new events is not
   * accepted; Slack then delivers it again.
   */
  enqueue(key: string, toEvents: () => Promise<readonly InboundEvent[]>): Promise<void>;
  /** Accepts no more events. Resolves when none is in flight, or after `STOP_MS`. */
  stop(): Promise<void>;
}

export function createDelivery(accept: Accept): Delivery {
  const queue = createKeyedQueue();
  let isStopped = false;

  return {
    async enqueue(key, toEvents) {
      if (isStopped) throw new Error("This process no longer accepts events.");
      const reading = toEvents();
      // `toEvents` can fail while earlier events are still being accepted.
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
