import type { InboundEvent } from "../port/events.ts";
import type { Work } from "../port/right.ts";
import { isStoreOutage } from "../store/outage.ts";
import type { Worker } from "./queue.ts";

/** The queue gives work up after this many failures in a row, because failing work blocks its conversation. */
const MAX_FAULTS = 10;
/**
 * The queue gives work up if more than this many processes died during it. The notice to the author then gets as many
 * attempts again, because writing it can kill the process too.
 */
const MAX_TAKEN_UP = 5;
/** Work that was running during this many deaths of a process is a suspect: it may have caused them. */
export const SUSPECT_DEATHS = 2;

export interface Failures {
  /** Failures in a row, including those from an outage of the store. */
  failures: number;
  /** Failures that an outage of the store did not cause. */
  faults: number;
  /** True if the queue has given the work up, so the worker only notifies the author. */
  isGivenUp: boolean;
}

export const NO_FAILURES: Failures = { failures: 0, faults: 0, isGivenUp: false };

/** `drop` removes given-up work, because notifying its author failed too. */
export interface RetryDecision extends Failures {
  next: "again" | "give-up" | "drop";
  pauseMs: number;
}

/** `retryMs` has the first and the longest pause before a retry. The pause doubles with each failure. */
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

/**
 * Lets the worker notify the author of given-up work. Skips the notice if attempts to notify have killed processes too,
 * or if the worker has no notice. Resolves to the finished events.
 */
export async function giveUpWork(
  worker: Worker,
  events: readonly InboundEvent[],
  deaths: number,
  work: Work,
): Promise<readonly InboundEvent[]> {
  if (worker.giveUp === undefined || deaths > 2 * MAX_TAKEN_UP) return events;
  return worker.giveUp([...events], work);
}
