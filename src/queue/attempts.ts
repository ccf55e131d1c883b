import type { InboundEvent } from "../port/events.ts";
import { isStoreOutage } from "../store/outage.ts";
import type { Worker } from "./queue.ts";

/** Failures in a row after which work is given up, so that one event cannot hold up its conversation for good. */
const MAX_FAULTS = 10;
/** Deaths of a process after which its open work is given up; giving up is tried as often, for that may kill too. */
const MAX_TAKEN_UP = 5;
/** Work that was open at this many deaths in a row may have caused them. */
export const SUSPECT_DEATHS = 2;

export interface Failures {
  /** Failures in a row. */
  failures: number;
  /** Failures that the work itself caused, not a store that was away. */
  faults: number;
  /** The work is given up: people are told so, and that is all. */
  isGivenUp: boolean;
}

export const NO_FAILURES: Failures = { failures: 0, faults: 0, isGivenUp: false };

/** The step after a failure, due in `pauseMs`. `drop` is for work that cannot even be given up. */
export interface RetryDecision extends Failures {
  next: "again" | "give-up" | "drop";
  pauseMs: number;
}

/** `isDone`: only taking it off the list has failed. `retryMs`: the pause doubles from the first to the second. */
export function judgeFailure(
  before: Failures,
  error: unknown,
  isDone: boolean,
  retryMs: readonly [first: number, longest: number],
): RetryDecision {
  const isOutage = isStoreOutage(error);
  const failures = before.failures + 1;
  const faults = before.faults + (isOutage ? 0 : 1);
  const pauseMs = Math.min(retryMs[0] * 2 ** (failures - 1), retryMs[1]);
  const after = { failures, faults, isGivenUp: before.isGivenUp };
  if (isDone || isOutage || (faults < MAX_FAULTS && !before.isGivenUp)) return { ...after, next: "again", pauseMs };
  return { ...after, isGivenUp: true, next: before.isGivenUp ? "drop" : "give-up", pauseMs: 0 };
}

/** True when this many deaths rule out one more attempt. */
export function isDeadly(deaths: number): boolean {
  return deaths > MAX_TAKEN_UP;
}

/** Ends what is given up, in the worker's words; where even that kills, or nobody is to be told, without any. */
export async function giveUpWork(
  worker: Worker,
  events: readonly InboundEvent[],
  deaths: number,
  signal: AbortSignal,
): Promise<readonly InboundEvent[]> {
  if (worker.giveUp === undefined || deaths > 2 * MAX_TAKEN_UP) return events;
  return worker.giveUp([...events], signal);
}
