import type { Logger } from "pino";
import { z } from "zod";
import { createSingleRun, type SingleRun } from "../concurrency/single-run.ts";
import type { RedisClient } from "../store/redis-connection.ts";
import { evalScript } from "../store/redis-script.ts";
import { KEEP, KEPT_MS } from "./partition-scripts.ts";
import type { Reach } from "./reach.ts";

export const KEEP_MS = 1_000;
/**
 * A right counts as expired this long before it expires in Redis, because clocks drift and a call takes time to arrive.
 */
export const MARGIN_MS = 300;

export const laneIds = z.array(z.string());

/** A partition that this process owns, or that it gave away but still keeps lanes in. */
export interface Holding {
  readonly partition: number;
  /** The value of the partition's owner key, and of the marks of its kept lanes. */
  readonly value: string;
  isOver: boolean;
}

export interface Mark {
  readonly holding: Holding;
  /** Before this time of the monotonic clock, no other process can take the lane. */
  until: number;
  /** True if Redis has confirmed that the mark is set. */
  isMarked: boolean;
}

/**
 * Lanes whose work continues in this process after it gave their partition away. Each lane has a mark in Redis, which
 * this process renews every second.
 */
export interface KeptLanes {
  markOf(holding: Holding, laneId: string): Mark | undefined;
  has(laneId: string): boolean;
  hasOf(partition: number): boolean;
  /**
   * `until` is the time until which this process certainly owns the lane. Only a response from Redis extends this time.
   */
  add(laneId: string, holding: Holding, until: number): Mark;
  lose(laneId: string): void;
  forget(laneId: string): void;
  /** Renews the marks of all kept lanes. Never rejects. */
  renewal: SingleRun;
}

/** Records that Redis confirmed the mark. `fromMs` is the time at which the confirmed message was sent. */
export function confirm(mark: Mark, fromMs: number): void {
  mark.isMarked = true;
  mark.until = fromMs + KEPT_MS - MARGIN_MS;
}

export interface KeptLanesOptions {
  client: RedisClient;
  reach: Reach;
  log: Logger;
  onLost(laneId: string): void;
}

export function createKeptLanes({ client, reach, log, onLost }: KeptLanesOptions): KeptLanes {
  const kept = new Map<string, Mark>();

  function lose(laneId: string): void {
    if (!kept.delete(laneId)) return;
    log.warn({ laneId }, "another process has taken over a lane");
    onLost(laneId);
  }

  async function renew(): Promise<void> {
    const due = [...kept].filter(([, { isMarked }]) => isMarked);
    if (due.length === 0) return;
    let fromMs = 0;
    const given = due.flatMap(([laneId, { holding }]) => [laneId, holding.value]);
    const lost = await reach.ask(laneIds, () => {
      fromMs = reach.noteAlive();
      return evalScript(client, KEEP, () => ({ keys: [], arguments: given }));
    });
    if (lost === undefined) return;
    for (const [laneId, mark] of due) {
      // The work on the lane may have ended during the request, which removed the mark.
      if (kept.get(laneId) !== mark) continue;
      if (lost.includes(laneId)) lose(laneId);
      else confirm(mark, fromMs);
    }
  }

  return {
    markOf(holding, laneId) {
      const mark = kept.get(laneId);
      return mark?.holding === holding ? mark : undefined;
    },
    has: (laneId) => kept.has(laneId),
    hasOf: (partition) => kept.values().some(({ holding }) => holding.partition === partition),
    add(laneId, holding, until) {
      const mark = { holding, until, isMarked: false };
      kept.set(laneId, mark);
      return mark;
    },
    lose,
    forget: (laneId) => void kept.delete(laneId),
    renewal: createSingleRun(renew),
  };
}
