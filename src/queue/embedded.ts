import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import type { InboundEvent } from "../adapter.ts";
import { openEventTable } from "./event-table.ts";
import { createLanes, type Lane } from "./lanes.ts";
import type { Queue, Worker } from "./queue.ts";

const SWEEP_INTERVAL_MS = 3_600_000;
/** Work that fails this often in a row is given up, so that one event cannot hold up its conversation for good. */
const MAX_FAILURES = 10;

export interface EmbeddedQueueOptions {
  database: DatabaseSync;
  /** Conversations worked on side by side. */
  maxActive: number;
  log: Logger;
  /** Pause before failed work is tried again: doubles from the first to the second. */
  retryMs?: readonly [first: number, longest: number];
}

/** The queue of one process: events on disk from `accept` until their work is done, the order of the work in memory. */
export function createEmbeddedQueue(options: EmbeddedQueueOptions): Queue {
  const { database, maxActive, log, retryMs = [1_000, 30_000] } = options;
  const table = openEventTable(database);
  const lanes = createLanes();
  const running = new Set<Promise<void>>();
  const abort = new AbortController();
  let worker: Worker | undefined;
  let closing = false;

  table.sweep();
  const sweeping = setInterval(() => table.sweep(), SWEEP_INTERVAL_MS).unref();
  for (const event of table.waiting()) lanes.add(event);

  function dispatch(): void {
    if (worker === undefined || closing || running.size >= maxActive) return;
    const lane = lanes.next();
    if (lane === undefined) return;
    const work = run(lane, worker).finally(() => {
      running.delete(work);
      dispatch();
    });
    running.add(work);
    dispatch();
  }

  async function run(lane: Lane, { take, work }: Worker): Promise<void> {
    const events = take(lane.waiting);
    try {
      await work(events, abort.signal);
      finish(lane, events);
    } catch (error) {
      lane.failures += 1;
      const { conversationId, failures } = lane;
      if (failures >= MAX_FAILURES) {
        log.error({ err: error, conversationId, failures }, "work failed again and again and is given up");
        return finish(lane, events);
      }
      // The order within a conversation holds: what comes after waits for what failed.
      const pauseMs = Math.min(retryMs[0] * 2 ** (failures - 1), retryMs[1]);
      log.warn({ err: error, conversationId, failures, pauseMs }, "work failed and will be tried again");
      lane.state = "pausing";
      setTimeout(() => {
        lanes.resume(lane);
        dispatch();
      }, pauseMs).unref();
    }
  }

  function finish(lane: Lane, events: readonly InboundEvent[]): void {
    table.finish(events);
    lanes.finish(lane, events);
  }

  return {
    // Asynchronous by contract: another queue stores over the network.
    async accept(event) {
      if (closing) throw new Error("This process is shutting down and accepts no more events.");
      if (!table.claim(event)) return false;
      lanes.add(event);
      worker?.notice(event);
      dispatch();
      return true;
    },
    start(newWorker) {
      worker = newWorker;
      dispatch();
    },
    depth: () => ({ waiting: lanes.waiting(), active: running.size }),
    async forget(platform, authorId) {
      table.forget(platform, authorId);
      lanes.drop(({ reply, author }) => reply.platform === platform && author.id === authorId);
    },
    async close(graceMs) {
      closing = true;
      clearInterval(sweeping);
      const grace = setTimeout(() => abort.abort("shutdown"), graceMs);
      await Promise.allSettled(running);
      clearTimeout(grace);
    },
  };
}
