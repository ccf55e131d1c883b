import type { InboundEvent } from "../port/events.ts";
import type { Work } from "../port/right.ts";
import { isStoreOutage } from "../store/outage.ts";
import type { Worker } from "./queue.ts";

/** After this many failures in a row, the work is given up, because it blocks its conversation. */
const MAX_FAULTS = 10;
/**
 * After this many deaths of a process, its work is given up. Giving up has as many attempts, because it can kill the
 * process too.
 */
const MAX_TAKEN_UP = 5;
/** Work that was open at this many deaths may have caused them. */
export const SUSPECT_DEATHS = 2;

export interface Failures {
  /** In a row. */
  failures: number;
  /** Failures without those from an outage of the store. */
  faults: number;
  /** True if the worker only has to notify the author. */
  isGivenUp: boolean;
}

export const NO_FAILURES: Failures = { failures: 0, faults: 0, isGivenUp: false };

/** `drop`: the work could not even be given up. */
export interface RetryDecision extends Failures {
  next: "again" | "give-up" | "drop";
  pauseMs: number;
}

/** `retryMs`: the pause doubles from the first value to the second. */
export function judgeFailure(
  before: Failures,
  error: unknown,
  retryMs: readonly [first: number, longest: number],
): RetryDecision {
  const isOutage = isStoreOutage(error);
  const failures = before.failures + 1;
  const faults = before.faults + (isOutage ? 0 : 1);
  const pauseMs = Math.min(retryMs[0] * 2 ** (failures - 1), retryMs[1]);
  const after = { failures, faults, isGivenUp: before.isGivenUp };
  if (isOutage || (faults < MAX_FAULTS && !before.isGivenUp)) return { ...after, next: "again", pauseMs };
  return { ...after, isGivenUp: true, next: before.isGivenUp ? "drop" : "give-up", pauseMs: 0 };
}

export function isDeadly(deaths: number): boolean {
  return deaths > MAX_TAKEN_UP;
}

/** Lets the worker notify the author, unless that kills the process too, or there is no one to notify. */
export async function giveUpWork(
  worker: Worker,
  events: readonly InboundEvent[],
  deaths: number,
  work: Work,
): Promise<readonly InboundEvent[]> {
  if (worker.giveUp === undefined || deaths > 2 * MAX_TAKEN_UP) return events;
  return worker.giveUp([...events], work);
}
