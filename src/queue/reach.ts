import type { Logger } from "pino";
import type { z } from "zod";
import { isStoreOutage } from "../store/outage.ts";
import type { RedisClient, RedisConnection } from "../store/redis-connection.ts";

/**
 * Redis is unreachable if every attempt has failed for this long, without the time in which this process was frozen.
 */
const OUT_OF_REACH_MS = 2_000;
/** If this process did not run for this long, it was frozen. */
const STANDSTILL_MS = 1_400;

/** Measures how long Redis has been unreachable. Times are by the monotonic clock. */
export interface Reach {
  /** Sends a command to Redis. Resolves to undefined if Redis did not respond. Never rejects. */
  ask<T>(schema: z.ZodType<T>, send: () => Promise<unknown>, on?: RedisClient): Promise<T | undefined>;
  /** Records that this process is running, and returns the time. Call this often: a long gap means a freeze. */
  noteAlive(): number;
  /**
   * True if a right that was certain until `untilMs` still holds, because Redis is unreachable and so no process can
   * take over. False if this process was frozen when the right expired.
   */
  isHeldByOutage(untilMs: number): boolean;
  isFailing(): boolean;
}

export function createReach({ run }: Pick<RedisConnection, "run">, log: Logger): Reach {
  /** When the first of the failed attempts in a row started. Undefined if the last attempt succeeded. */
  let failingSince: number | undefined;
  let seenAt = performance.now();
  let runningSince = seenAt;

  function noteAlive(): number {
    const now = performance.now();
    if (now - seenAt > STANDSTILL_MS) runningSince = now;
    seenAt = now;
    return now;
  }

  return {
    noteAlive,
    async ask(schema, send, on) {
      const fromMs = noteAlive();
      try {
        const answer = schema.parse(await run(send, on));
        failingSince = undefined;
        return answer;
      } catch (error) {
        failingSince ??= fromMs;
        log[isStoreOutage(error) ? "debug" : "error"]({ err: error }, "Redis did not confirm ownership");
        return undefined;
      }
    },
    isHeldByOutage(untilMs) {
      const now = noteAlive();
      const isOut = failingSince !== undefined && now - Math.max(failingSince, runningSince) > OUT_OF_REACH_MS;
      return isOut && untilMs > runningSince;
    },
    isFailing: () => failingSince !== undefined,
  };
}
