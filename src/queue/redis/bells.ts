import type { Job, JobType, Queue, Worker } from "bullmq";
import type { Logger } from "pino";
import { createListeningClient, type RedisConnection } from "../../store/redis-connection.ts";

/** A bell whose process is dead, or stands still, rings for another one after so long, and at most a look later. */
const LOCK_MS = 3_000;
const STALLED_LOOK_MS = 1_000;
const RENEW_MS = 1_400;
/** A bell that was heard so often by processes that died with it falls silent, until the sweep rings another one. */
const MAX_STALLED = 10;
const NAME = "lanes";
/** No bound of its own: places bound these. */
const MAX_OWN_BELLS = 1_000;
const PREFIX = "palaver:bells";

/** A sign that something waits in a lane, heard by one process at a time. Gives no right to the lane: see `Leases`. */
export interface Bell {
  readonly laneId: string;
  /** The bell rings once more after so long. Always rejects; `onBell` must let that error through. */
  snooze(pauseMs: number): Promise<never>;
}

/**
 * Rings a lane's bell in that process, or in whichever hears it. Never rejects: the sweep makes up for a bell that is not
 * rung.
 */
export type Ring = (laneId: string, workerId?: string) => Promise<void>;

/** One bell for each lane that something waits in: BullMQ hands them out, holds their locks and finds those of the dead. */
export interface Bells {
  /** As `Ring`, but rejects while Redis is away. Rung while being heard, a bell is heard once more afterwards. */
  ring(laneId: string, workerId?: string): Promise<void>;
  /** Lets so many bells be heard at a time, each until `onBell` ends, beside those that ring in this process alone. */
  hear(onBell: (bell: Bell) => Promise<void>, atOnce: number): Promise<void>;
  /** Hears no further ones. Resolves to the lanes whose bells rang in this process alone and were not heard. */
  pause(): Promise<string[]>;
  /** Resolves to the lanes whose bells rang in a process that is gone, and forgets them. */
  leftBy(workerId: string): Promise<string[]>;
  /** Once all that were heard have ended. */
  close(): Promise<void>;
}

export function createBells(redis: RedisConnection, ownId: string, log: Logger): Bells {
  // BullMQ waits for a connection itself, and blocks on another one like it.
  const raw = createListeningClient(redis);
  const runHere = <T>(operation: () => Promise<T>): Promise<T> => redis.run(operation, raw);
  const opening = open();
  // Whoever rings or hears meets it.
  opening.catch(() => {});
  let workers: Worker[] = [];
  /** Queues by the only process in which they ring, see `toName`. */
  const queues = new Map<string, Queue>();

  async function open() {
    // Takes a third of a second to load, which only those need who share a Redis.
    const bullmq = await import("bullmq");
    // One for all: each queue would make its own, and let an error of the connection end the process once it is closed.
    const connection = bullmq.createNodeRedisClient(raw);
    connection.on("error", () => {});
    // BullMQ's own copies would stay connected to a server that has become a replica.
    connection.duplicate = () => bullmq.createNodeRedisClient(createListeningClient(redis)).on("error", () => {});
    return { ...bullmq, connection };
  }

  async function queueOf(workerId: string | undefined): Promise<Queue> {
    const bullmq = await opening;
    const name = toName(workerId);
    const known = queues.get(name);
    if (known !== undefined) return known;
    const queue = new bullmq.Queue(name, { connection: bullmq.connection, prefix: PREFIX, skipVersionCheck: true });
    queue.on("error", () => {});
    queues.set(name, queue);
    return queue;
  }

  async function forget(workerId: string): Promise<void> {
    const queue = await queueOf(workerId);
    await runHere(() => queue.obliterate({ force: true }));
    queues.delete(toName(workerId));
    await queue.close();
  }

  return {
    async ring(laneId, workerId) {
      const queue = await queueOf(workerId);
      const deduplication = { id: laneId, keepLastIfActive: true };
      await runHere(() =>
        queue.add("bell", { laneId }, { deduplication, removeOnComplete: true, removeOnFail: true, attempts: 1 }),
      );
    },
    async hear(onBell, atOnce) {
      const bullmq = await opening;
      const toBell = (job: Job<{ laneId: string }>, token: string): Bell => ({
        laneId: job.data.laneId,
        async snooze(pauseMs) {
          await job.moveToDelayed(Date.now() + pauseMs, token);
          throw new bullmq.DelayedError();
        },
      });
      const open = (name: string, concurrency: number) => {
        const worker = new bullmq.Worker(name, (job, token = "") => onBell(toBell(job, token)), {
          connection: bullmq.connection,
          prefix: PREFIX,
          concurrency,
          lockDuration: LOCK_MS,
          lockRenewTime: RENEW_MS,
          stalledInterval: STALLED_LOOK_MS,
          maxStalledCount: MAX_STALLED,
          skipVersionCheck: true,
        });
        // An outage is told by the store.
        worker.on("error", (error) => log.debug({ err: error }, "a bell could not be kept or moved"));
        return worker;
      };
      workers = [open(NAME, atOnce), open(toName(ownId), MAX_OWN_BELLS)];
    },
    async pause() {
      await Promise.all(workers.map((worker) => worker.pause(true)));
      if (workers.length === 0) return [];
      const queue = await queueOf(ownId);
      return await runHere(() => readLanes(queue, ["wait", "delayed"]));
    },
    async leftBy(workerId) {
      const queue = await queueOf(workerId);
      const left = await runHere(() => readLanes(queue, ["wait", "delayed", "active"]));
      await forget(workerId);
      return left;
    },
    async close() {
      await opening;
      await Promise.all(workers.map((worker) => worker.close()));
      if (workers.length > 0) await forget(ownId).catch(() => {});
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      if (raw.isOpen) raw.destroy();
    },
  };
}

function toName(workerId: string | undefined): string {
  return workerId === undefined ? NAME : `${NAME}-${workerId}`;
}

async function readLanes(queue: Queue, states: JobType[]): Promise<string[]> {
  const jobs = (await queue.getJobs(states)) as Array<Job<{ laneId: string }> | undefined>;
  return jobs.flatMap((job) => job?.data.laneId ?? []);
}
