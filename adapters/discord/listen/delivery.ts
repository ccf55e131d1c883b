import type { Logger } from "pino";
import { waitAtMost } from "../../../src/concurrency/deadlines.ts";
import { createKeyedQueue } from "../../../src/concurrency/keyed-queue.ts";
import { retry } from "../../../src/concurrency/retry.ts";
import type { Accept, InboundEvent } from "../../../src/port/events.ts";

/**
 * Pauses in milliseconds before an event that could not be stored is offered again, since Discord delivers it once. They
 * add up to ten minutes: for so long a command's person can still be told that it was lost.
 */
export const RETRY_PAUSES_MS: readonly number[] = [200, 500, 1_000, 2_000, 4_000, ...Array<number>(74).fill(8_000)];

/** By then the first offer of an event before it has failed, and somebody who waits for three seconds can be told. */
const HELD_UP_MS = 2_200;
/** Longest wait at the end for events that are being stored. */
const STOP_MS = 5_000;

type SayWaits = (event: InboundEvent) => void;

/** Hands events over in the order in which they came, channel by channel. */
export interface Delivery {
  /**
   * Resolves to true once all events were taken, and to false when one was given up. Never rejects. `toWaiting` gives
   * the event to tell of where those before it keep it waiting for the store.
   */
  enqueue(
    channelId: string,
    toEvents: () => Promise<readonly InboundEvent[]>,
    toWaiting?: () => InboundEvent | undefined,
  ): Promise<boolean>;
  /** Offers nothing again; resolves when nothing is under way, or after a while. */
  stop(): Promise<void>;
}

export function createDelivery(accept: Accept, log: Logger, sayWaits?: SayWaits): Delivery {
  const queue = createKeyedQueue();
  const heldUp = new Set<string>();
  const stopping = new AbortController();

  async function offer(channelId: string, event: InboundEvent): Promise<void> {
    function onRetry(error: unknown): void {
      heldUp.add(channelId);
      log.warn({ err: error, key: event.key }, "An event from Discord could not be stored; it is offered again.");
    }
    try {
      await retry(() => accept(event), { pausesMs: RETRY_PAUSES_MS, onRetry }, stopping.signal);
    } finally {
      heldUp.delete(channelId);
    }
  }

  async function run(channelId: string, toEvents: () => Promise<readonly InboundEvent[]>): Promise<boolean> {
    try {
      for (const event of await toEvents()) await offer(channelId, event);
      return true;
    } catch (error) {
      log.error({ err: error }, "An event from Discord was not taken over. What it asked for is not done.");
      return false;
    }
  }

  async function sayLate(
    channelId: string,
    taking: Promise<boolean>,
    toWaiting: () => InboundEvent | undefined,
    sayWaits: SayWaits,
  ): Promise<void> {
    const isOver = (await waitAtMost(taking, HELD_UP_MS)) !== undefined;
    const event = isOver || !heldUp.has(channelId) ? undefined : toWaiting();
    if (event !== undefined) sayWaits(event);
  }

  return {
    enqueue(channelId, toEvents, toWaiting) {
      const taking = queue.run(channelId, () => run(channelId, toEvents));
      if (toWaiting !== undefined && sayWaits !== undefined) void sayLate(channelId, taking, toWaiting, sayWaits);
      return taking;
    },
    async stop() {
      stopping.abort(new Error("The adapter takes no more events."));
      await waitAtMost(queue.idle(), STOP_MS);
    },
  };
}
