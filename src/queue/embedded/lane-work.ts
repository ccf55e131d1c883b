import type { Logger } from "pino";
import { isCut } from "../../concurrency/cut.ts";
import type { InboundEvent } from "../../port/events.ts";
import { giveUpWork, isDeadly, judgeFailure } from "../attempts.ts";
import type { Worker } from "../queue.ts";
import type { EventTable } from "./event-table.ts";
import type { Lane, Lanes } from "./lanes.ts";

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
    const { next, pauseMs, ...after } = judgeFailure(lane, error, lane.done.length > 0, retryMs);
    Object.assign(lane, after);
    const { conversationId, failures } = lane;
    if (next === "again") {
      log.warn({ err: error, conversationId, failures, pauseMs }, "work failed and will be tried again");
    } else if (next === "give-up") {
      log.error({ err: error, conversationId, failures }, "work failed again and again and is given up");
    } else {
      log.error({ err: error, conversationId }, "a person could not be told that their work is given up");
      lane.done = lane.taken;
    }
    pause(lane, pauseMs);
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

  /** Notes the beginning on disk before the work begins, on the first event alone: the turn is named after it. */
  function countDeaths(lane: Lane): number {
    try {
      const deaths = table.countBegun(lane.taken.slice(0, 1));
      lane.isCounted = true;
      return deaths;
    } catch (err) {
      // Rather do what was asked than wait for a disk that takes nothing.
      log.warn({ err, conversationId: lane.conversationId }, "the beginning of work could not be noted");
      return 0;
    }
  }

  async function workOn(lane: Lane, worker: Worker, signal: AbortSignal): Promise<readonly InboundEvent[]> {
    const deaths = countDeaths(lane);
    const { conversationId, taken } = lane;
    if (isDeadly(deaths) && !lane.isGivenUp) {
      log.error({ conversationId, deaths }, "the process died again and again during this work, which is given up");
      lane.isGivenUp = true;
    }
    return lane.isGivenUp ? giveUpWork(worker, taken, deaths, signal) : worker.work([...taken], signal);
  }

  return async (lane, worker, signal) => {
    try {
      if (lane.done.length === 0) {
        lane.taken = worker.take(lane.waiting);
        const done = await workOn(lane, worker, signal);
        // Nothing of a person who is erased is handed out again.
        lane.done = isCut(signal, "forgotten") ? lane.taken : done;
      }
      table.finish(lane.done);
      lanes.finish(lane, lane.done);
    } catch (error) {
      uncount(table, lane, log);
      if (isCut(signal, "forgotten")) lanes.finish(lane, lane.taken);
      else if (isCut(signal, "shutdown"))
        log.info({ conversationId: lane.conversationId }, "work was cut; the next start takes it up again");
      else fail(lane, error);
    }
  };
}

/** A begun mark that stays on disk counts as a death: takes it off for work that ends, or is cut on purpose. */
export function uncount(table: EventTable, lane: Lane, log: Logger): void {
  if (!lane.isCounted) return;
  lane.isCounted = false;
  try {
    table.uncount(lane.taken.slice(0, 1));
  } catch (err) {
    log.warn({ err, conversationId: lane.conversationId }, "the end of work could not be noted");
  }
}
