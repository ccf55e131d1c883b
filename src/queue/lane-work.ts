import type { Logger } from "pino";
import { isStoreOutage } from "../store/outage.ts";
import type { EventTable } from "./event-table.ts";
import type { Lane, Lanes } from "./lanes.ts";
import type { Worker } from "./queue.ts";

/**
 * Work that fails this often in a row is given up, so that one event cannot hold up its conversation for good. A store
 * that is away does not count: it comes back, and what people asked for meanwhile is to be done then.
 */
const MAX_FAULTS = 10;

export interface LaneWorkOptions {
  table: EventTable;
  lanes: Lanes;
  log: Logger;
  /** Pause before failed work is tried again: doubles from the first to the second. */
  retryMs: readonly [first: number, longest: number];
  /** Told when a lane is back in the line after its pause. */
  onReady(): void;
}

/**
 * Lets a worker do what is next in a lane, and takes off what is done. Resolves when that has ended, well or not; never
 * rejects. What is done is not done again, also when the disk takes nothing: only taking it off is tried again.
 */
export type WorkOnLane = (lane: Lane, worker: Worker, signal: AbortSignal) => Promise<void>;

export function createLaneWork({ table, lanes, log, retryMs, onReady }: LaneWorkOptions): WorkOnLane {
  function fail(lane: Lane, error: unknown): void {
    lane.failures += 1;
    if (!isStoreOutage(error)) lane.faults += 1;
    const { conversationId, failures, faults } = lane;
    if (lane.done.length > 0 || faults < MAX_FAULTS) {
      const pauseMs = Math.min(retryMs[0] * 2 ** (failures - 1), retryMs[1]);
      log.warn({ err: error, conversationId, failures, pauseMs }, "work failed and will be tried again");
      return pause(lane, pauseMs);
    }
    log.error({ err: error, conversationId, failures }, "work failed again and again and is given up");
    lane.done = lane.taken;
    pause(lane, 0);
  }

  /** The order within a conversation holds: what comes after waits for what failed. */
  function pause(lane: Lane, pauseMs: number): void {
    lane.state = "pausing";
    lane.taken = [];
    setTimeout(() => {
      lanes.resume(lane);
      onReady();
    }, pauseMs).unref();
  }

  return async (lane, { take, work }, signal) => {
    try {
      if (lane.done.length === 0) {
        lane.taken = take(lane.waiting);
        const done = await work([...lane.taken], signal);
        // Nothing of a person who is erased is handed out again.
        lane.done = signal.reason === "forgotten" ? lane.taken : done;
      }
      table.finish(lane.done);
      lanes.finish(lane, lane.done);
    } catch (error) {
      if (signal.reason === "forgotten") lanes.finish(lane, lane.taken);
      else if (signal.reason === "shutdown")
        log.info({ conversationId: lane.conversationId }, "work was cut; the next start takes it up again");
      else fail(lane, error);
    }
  };
}
