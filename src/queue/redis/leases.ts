import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { cut } from "../../concurrency/cut.ts";
import { FencedError } from "../../concurrency/fence.ts";
import { isStoreOutage } from "../../store/outage.ts";
import { type RedisLanes, SURE_MS } from "./lanes.ts";

const RENEW_MS = 500;
/** Clocks run unevenly, and a call that begins now arrives a little later. */
const MARGIN_MS = 300;
/** Redis counts as out of reach once every attempt has failed for so long, and this process did run meanwhile. */
const OUT_OF_REACH_MS = 2_000;
/** A process that was not seen to run for so long stood still: it knows nothing of what happened meanwhile. */
const STANDSTILL_MS = 1_400;
const AGAIN_MS = 50;

/** The right to work on a lane, for as long as nobody else has taken it over. */
export interface Lease {
  /** Aborts with `lost` when another process has taken over. */
  readonly signal: AbortSignal;
  /**
   * Rejects with a `FencedError` when another process has taken over. Free while the lease is surely ours by this
   * process's own clock, else asks Redis. Passes while Redis is out of reach, as nobody can take over without it, unless
   * the lease ended while this process stood still.
   */
  check(): Promise<void>;
  end(): void;
  /** The work goes on though it is not waited for any more: `check` rejects from now on. */
  abandon(): void;
}

/** Keeps the leases of all lanes that this process works on, by one call for all. */
export interface Leases {
  /** `fromMs`: when the lane began to be taken, by `performance.now()`. */
  hold(laneId: string, token: string, fromMs: number): Lease;
  /** Redis may be there again: what has lapsed is renewed, before others take it over. */
  renew(): void;
  close(): void;
}

interface Entry {
  laneId: string;
  token: string;
  controller: AbortController;
  isAbandoned: boolean;
  /** By the monotonic clock of this process, which goes on while it stands still. */
  until: number;
}

/** `onLost`: another process has taken a lane over. */
export function createLeases(lanes: Pick<RedisLanes, "prolong">, log: Logger, onLost?: () => void): Leases {
  const entries = new Set<Entry>();
  let renewing: Promise<void> | undefined;
  /** The beginning of the first of the failed attempts in a row. */
  let failingSince: number | undefined;
  let seenAt = performance.now();
  let runningSince = seenAt;

  /** Notes that this process runs, and returns the time. */
  function noteAlive(): number {
    const now = performance.now();
    if (now - seenAt > STANDSTILL_MS) runningSince = now;
    seenAt = now;
    return now;
  }

  function isOutOfReach(now: number): boolean {
    return failingSince !== undefined && now - Math.max(failingSince, runningSince) > OUT_OF_REACH_MS;
  }

  async function attempt(): Promise<void> {
    const due = [...entries];
    const from = noteAlive();
    try {
      const lost = await lanes.prolong(due);
      failingSince = undefined;
      for (const entry of due) {
        // Given back meanwhile, it is no longer there.
        if (!entries.has(entry)) continue;
        if (lost.includes(entry.laneId)) lose(entry);
        else entry.until = from + SURE_MS - MARGIN_MS;
      }
    } catch (error) {
      failingSince ??= from;
      log[isStoreOutage(error) ? "debug" : "error"]({ err: error }, "leases could not be renewed");
    }
  }

  function lose({ laneId, controller }: Entry): void {
    // Until its work has ended, a lane is asked about again.
    if (controller.signal.aborted) return;
    log.warn({ laneId }, "another process has taken a lane over");
    onLost?.();
    cut(controller, "lost");
  }

  /** One attempt at a time, for everybody. Never rejects. */
  function renew(): Promise<void> {
    renewing ??= attempt().finally(() => (renewing = undefined));
    return renewing;
  }

  async function check(entry: Entry): Promise<void> {
    for (;;) {
      const now = noteAlive();
      if (entry.isAbandoned) throw new FencedError("This is not waited for any more, and others may do it.");
      if (entry.controller.signal.aborted) throw new FencedError("Another process has taken this over.");
      // Past the end of its work, a lane is nobody's concern.
      if (now <= entry.until || !entries.has(entry)) return;
      // A lease that ended while this process stood still may have been taken over before Redis went away.
      if (isOutOfReach(now) && entry.until > runningSince) return;
      await renew();
      if (failingSince !== undefined) await sleep(AGAIN_MS);
    }
  }

  function onTime(): void {
    noteAlive();
    if (entries.size > 0) void renew();
  }

  const timer = setInterval(onTime, RENEW_MS).unref();

  return {
    hold(laneId, token, fromMs) {
      const until = fromMs + SURE_MS - MARGIN_MS;
      const entry: Entry = { laneId, token, controller: new AbortController(), isAbandoned: false, until };
      entries.add(entry);
      failingSince = undefined;
      return {
        signal: entry.controller.signal,
        check: () => check(entry),
        end: () => void entries.delete(entry),
        abandon: () => void (entry.isAbandoned = true),
      };
    },
    renew: onTime,
    close: () => clearInterval(timer),
  };
}
