import type { CallKind } from "./call.ts";
import type { OwnCalls } from "./own-calls.ts";

/** What a meter knows about its counter, whatever kind that is. */
export interface Rule {
  /** Calls per window: the depth of a leaky counter. */
  n: number;
  /** Window in seconds: of a leaky counter the time in which a full one empties. */
  w: number;
  /** Upper estimate of the round trip, seconds. */
  rtt: number;
  calls: OwnCalls;
}

/** An accepted call with its headers. The true instant of the reset lies between `lo` and `hi`. */
export interface Seen {
  kind: CallKind;
  /** When it began and when its answer came. */
  s: number;
  a: number;
  reset: number;
  remaining: number;
  lo: number;
  hi: number;
  /** Other own calls in flight meanwhile: the answer may or may not have counted them. */
  over: number;
}

/** One model of how a platform counts. */
export interface Counter {
  credit(at: number): number;
  sent(now: number): void;
  heard(seen: Seen): void;
  /** A 429 that ends at `until`. */
  refused(until: number): void;
  /** Seconds between calls that spread what is left evenly. */
  gap(now: number): number;
  /** Moments at which the credit may grow. */
  turns(): number[];
}

/** Seconds between calls in the long run. */
export function toSpacing({ n, w }: Rule): number {
  return w / n;
}
