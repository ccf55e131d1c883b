import type { Logger } from "pino";
import { waitAtMost } from "../../../src/concurrency/deadlines.ts";
import { createKeyedQueue } from "../../../src/concurrency/keyed-queue.ts";
import { retry } from "../../../src/concurrency/retry.ts";
import type { Accept, InboundEvent } from "../../../src/port/events.ts";

/**
 * Pauses in milliseconds before each retry of an event, because Discord delivers an event only once. Together they last
 * ten minutes, which leaves time to tell a command's user that the event was lost.
 */
export const RETRY_PAUSES_MS: readonly number[] = [200, 500, 1_000, 2_000, 4_000, ...Array<number>(74).fill(8_000)];

/**
 * If an event waits this long for an earlier one, its author gets a notice: the first attempt to store the earlier
 * event has failed, and Discord waits only three seconds.
 */
const HELD_UP_MS = 2_200;
const STOP_MS = 5_000;

const OVER = () => true;

type NotifyDelayed = (event: InboundEvent) => void;

/** Passes events on in the order in which they arrived, per key. */
export interface Delivery {
  /**
   * Calls `toEvents` after earlier events with the same key were accepted. Resolves when the queue has accepted the new
   * events. Rejects after ten minutes of retries. `toWaiting` returns the event whose author gets a notice to wait.
   */
  enqueue(
    key: string,
    toEvents: () => Promise<readonly InboundEvent[]>,
    toWaiting?: () => InboundEvent | undefined,
  ): Promise<void>;
  /** Accepts no more events. Resolves when all are handled, or after `STOP_MS`. */
  stop(): Promise<void>;
}

export function createDelivery(accept: Accept, log: Logger, notifyDelayed?: NotifyDelayed): Delivery {
  const queue = createKeyedQueue();
  const heldUp = new Set<string>();
  const stopping = new AbortController();

  async function offer(channelId: string, event: InboundEvent): Promise<void> {
    function onRetry(error: unknown): void {
      heldUp.add(channelId);
      log.warn({ err: error, key: event.key }, "Could not store an event from Discord; retrying.");
    }
    try {
      await retry(() => accept(event), { pausesMs: RETRY_PAUSES_MS, onRetry }, stopping.signal);
    } finally {
      heldUp.delete(channelId);
    }
  }

  async function run(channelId: string, toEvents: () => Promise<readonly InboundEvent[]>): Promise<void> {
    try {
      for (const event of await toEvents()) await offer(channelId, event);
    } catch (error) {
      log.error({ err: error }, "Gave up storing an event from Discord; the bot will not handle it.");
      throw error;
    }
  }

  async function sayLate(
    channelId: string,
    taking: Promise<void>,
    toWaiting: () => InboundEvent | undefined,
    notifyDelayed: NotifyDelayed,
  ): Promise<void> {
    const isOver = (await waitAtMost(taking.then(OVER, OVER), HELD_UP_MS)) !== undefined;
    const event = isOver || !heldUp.has(channelId) ? undefined : toWaiting();
    if (event !== undefined) notifyDelayed(event);
  }

  return {
    enqueue(channelId, toEvents, toWaiting) {
      const taking = queue.run(channelId, () => run(channelId, toEvents));
      if (toWaiting !== undefined && notifyDelayed !== undefined)
        void sayLate(channelId, taking, toWaiting, notifyDelayed);
      return taking;
    },
    async stop() {
      stopping.abort(new Error("The adapter is closed and accepts no events."));
      await waitAtMost(queue.idle(), STOP_MS);
    },
  };
}
