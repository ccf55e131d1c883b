import type { CallResult } from "../port/pace.ts";

/** One limit of a platform, tracked by counting calls. */
export interface Limit {
  credit(at: number): number;
  /**
   * Returns the first moment at or after `from` with credit for that many calls. Returns Infinity if such a moment
   * never comes, or if it depends on a response.
   */
  creditAt(needs: number, from: number): number;
  sent(now: number): void;
  done(answer: CallResult, now: number): void;
  /** Returns until when past calls and refusals affect the limit. */
  keepUntil(): number;
}

/** An estimate of the platform's real limit, made when the platform refuses a call that should be permitted. */
interface TightBucket {
  /** Capacity in calls. It is at least 2, so that an edit can leave one call for a final edit. */
  depth: number;
  /** Calls per millisecond that become available again. */
  rate: number;
  /** Calls that were available at `at`. */
  level: number;
  at: number;
  until: number;
}

export interface CallLog extends Limit {
  /** Number of past calls that still count at that moment. */
  count(at: number): number;
  /** True if the platform recently refused a permitted call, so its real limit is tighter than the documented one. */
  isTight(at: number): boolean;
}

/** After the platform refused a permitted call, the limit counts as tighter for this long. */
const TIGHT_FOR_MS = 600_000;
/** The real limit's capacity is estimated as the number of calls in this period before a refusal. */
const TIGHT_SPAN_MS = 15_000;
/** Share of the documented rate that is used while a limit counts as tighter. */
const TIGHT_SHARE = 0.9;

/**
 * Counts calls in a sliding window: at most `calls` can start within `windowMs`. After a 429, none starts until the
 * requested wait is over.
 */
export function createCallLog(calls: number, windowMs: number): CallLog {
  let log: number[] = [];
  let blockedUntil = -Infinity;
  let tight: TightBucket | undefined;

  const count = (at: number) => log.length - firstAfter(log, at - windowMs);
  const isTight = (at: number) => tight !== undefined && at < tight.until;

  function credit(at: number): number {
    if (at < blockedUntil) return 0;
    const free = calls - count(at);
    return tight !== undefined && isTight(at) ? Math.min(free, Math.floor(toLevel(tight, at))) : free;
  }

  function creditAt(needs: number, from: number): number {
    if (needs > calls) return Infinity;
    const returning = log[log.length - (calls - needs) - 1];
    const at = Math.max(from, blockedUntil, returning === undefined ? -Infinity : returning + windowMs);
    if (tight === undefined || !isTight(at)) return at;
    if (needs > tight.depth) return tight.until;
    return Math.min(tight.until, Math.max(at, tight.at + (needs - tight.level) / tight.rate));
  }

  return {
    credit,
    creditAt,
    count,
    sent(now) {
      log = log.slice(firstAfter(log, now - windowMs));
      // Inserted by time, because some calls are added late: their kind becomes known only after their start.
      log.splice(firstAfter(log, now), 0, now);
      if (tight !== undefined) Object.assign(tight, { level: toLevel(tight, now) - 1, at: now });
    },
    done(answer, now) {
      if (answer.ok || answer.retryAfterMs === undefined) return;
      blockedUntil = Math.max(blockedUntil, now + answer.retryAfterMs);
      const recent = log.length - firstAfter(log, now - TIGHT_SPAN_MS);
      tight = {
        depth: Math.max(2, recent / 2),
        rate: (TIGHT_SHARE * calls) / windowMs,
        level: 0,
        at: blockedUntil,
        until: now + TIGHT_FOR_MS,
      };
    },
    isTight,
    keepUntil: () => Math.max((log.at(-1) ?? -Infinity) + windowMs, blockedUntil, tight?.until ?? -Infinity),
  };
}

function toLevel(bucket: TightBucket, at: number): number {
  return Math.min(bucket.depth, bucket.level + Math.max(0, at - bucket.at) * bucket.rate);
}

/** Returns the index of the first time after `time` in an ascending list. */
function firstAfter(times: readonly number[], time: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((times[middle] ?? Infinity) > time) high = middle;
    else low = middle + 1;
  }
  return low;
}
