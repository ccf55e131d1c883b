import type { Logger } from "pino";
import { z } from "zod";
import { createSingleRun, type SingleRun } from "../concurrency/single-run.ts";
import type { RedisClient } from "../store/redis-connection.ts";
import { evalScript } from "../store/redis-script.ts";
import { KEEP, KEPT_MS } from "./partition-scripts.ts";
import type { Reach } from "./reach.ts";

export const KEEP_MS = 1_000;
/** Clocks drift, and a call that starts now arrives later. */
export const MARGIN_MS = 300;

export const laneIds = z.array(z.string());

/** A partition of this process, or a former one with kept lanes. */
export interface Holding {
  readonly partition: number;
  /** The value of the owner's key and of the marks. */
  readonly value: string;
  isOver: boolean;
}

export interface Mark {
  readonly holding: Holding;
  /** No other process can take the lane before this time of the monotonic clock. */
  until: number;
  /** True if Redis has confirmed the mark. */
  isMarked: boolean;
}

/**
 * Lanes whose work continues after their partition was given away. Each has a mark in Redis, which is renewed every
 * second.
 */
export interface KeptLanes {
  markOf(holding: Holding, laneId: string): Mark | undefined;
  has(laneId: string): boolean;
  hasOf(partition: number): boolean;
  /** Until `until`, this process certainly owns the lane. Only Redis extends it. */
  add(laneId: string, holding: Holding, until: number): Mark;
  lose(laneId: string): void;
  forget(laneId: string): void;
  /** Never rejects. */
  renewal: SingleRun;
}

/** Redis confirmed the mark in response to a message sent at `fromMs`. */
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
      // The work may have ended and removed the mark.
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
