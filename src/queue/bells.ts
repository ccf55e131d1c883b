import type { Job, Worker } from "bullmq";
import type { Logger } from "pino";
import { createListeningClient, type RedisConnection } from "../store/redis-connection.ts";

/** A bell whose process is dead, or stands still, rings for another one after so long, and at most a look later. */
const LOCK_MS = 3_000;
const STALLED_LOOK_MS = 1_000;
const RENEW_MS = 1_400;
/** A bell that was heard so often by processes that died with it falls silent, until the sweep rings another one. */
const MAX_STALLED = 10;
const NAME = "lanes";
const PREFIX = "palaver:bells";

/**
 * That something waits in a lane, heard by one process at a time, and by another one when that one dies. It is no right
 * to work on the lane: see `Leases`.
 */
export interface Bell {
  readonly laneId: string;
  /** The bell rings once more after so long; what hears it has to end with what this rejects with. */
  snooze(pauseMs: number): Promise<never>;
}

/** One bell for each lane that something waits in: BullMQ hands them out, holds their locks and finds those of the dead. */
export interface Bells {
  /** Rung while it is heard, it is heard once more after that; rung while it waits, it is one. */
  ring(laneId: string): Promise<void>;
  /** Lets so many bells be heard at a time, each until `onBell` ends. */
  hear(onBell: (bell: Bell) => Promise<void>, atOnce: number): Promise<void>;
  /** Hears no further ones. */
  pause(): Promise<void>;
  /** Once all that were heard have ended. */
  close(): Promise<void>;
}

export function createBells({ client, run }: RedisConnection, log: Logger): Bells {
  // BullMQ waits for a connection itself, and blocks on another one like it.
  const connection = createListeningClient({ client });
  const opening = open();
  // Whoever rings or hears meets it.
  opening.catch(() => {});
  let worker: Worker | undefined;

  async function open() {
    // Takes a third of a second to load, which only those need who share a Redis.
    const bullmq = await import("bullmq");
    const queue = new bullmq.Queue(NAME, { connection, prefix: PREFIX, skipVersionCheck: true });
    queue.on("error", () => {});
    return { bullmq, queue };
  }

  return {
    async ring(laneId) {
      const { queue } = await opening;
      const deduplication = { id: laneId, keepLastIfActive: true };
      await run(() =>
        queue.add("bell", { laneId }, { deduplication, removeOnComplete: true, removeOnFail: true, attempts: 1 }),
      );
    },
    async hear(onBell, atOnce) {
      const { bullmq } = await opening;
      const toBell = (job: Job<{ laneId: string }>, token: string): Bell => ({
        laneId: job.data.laneId,
        async snooze(pauseMs) {
          await job.moveToDelayed(Date.now() + pauseMs, token);
          throw new bullmq.DelayedError();
        },
      });
      worker = new bullmq.Worker(NAME, (job, token = "") => onBell(toBell(job, token)), {
        connection,
        prefix: PREFIX,
        concurrency: atOnce,
        lockDuration: LOCK_MS,
        lockRenewTime: RENEW_MS,
        stalledInterval: STALLED_LOOK_MS,
        maxStalledCount: MAX_STALLED,
        skipVersionCheck: true,
      });
      // An outage is told by the store.
      worker.on("error", (error) => log.debug({ err: error }, "a bell could not be kept or moved"));
    },
    async pause() {
      await worker?.pause(true);
    },
    async close() {
      const { queue } = await opening;
      await worker?.close();
      await queue.close();
      if (connection.isOpen) connection.destroy();
    },
  };
}
