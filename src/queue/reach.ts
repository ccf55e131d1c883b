import type { Logger } from "pino";
import type { z } from "zod";
import { isStoreOutage } from "../store/outage.ts";
import type { RedisClient, RedisConnection } from "../store/redis-connection.ts";

/** Redis counts as unreachable if every attempt has failed for this long while this process was running. */
const OUT_OF_REACH_MS = 2_000;
/** After a gap of this length, the process was frozen and knows nothing about the time in between. */
const STANDSTILL_MS = 1_400;

/** Measures the time in which this process could not reach Redis. All times are by the monotonic clock. */
export interface Reach {
  /** Sends a command to Redis and records whether Redis responds. Undefined if it did not. Never rejects. */
  ask<T>(schema: z.ZodType<T>, send: () => Promise<unknown>, on?: RedisClient): Promise<T | undefined>;
  /** Records that this process is running, and returns the time. Call it often. */
  noteAlive(): number;
  /**
   * True if a right that was certain until `untilMs` is still valid, because Redis is unreachable and so no other
   * process can have taken over. If the right expired while this process was frozen, another process may have taken it
   * before the outage.
   */
  isHeldByOutage(untilMs: number): boolean;
  isFailing(): boolean;
}

export function createReach({ run }: Pick<RedisConnection, "run">, log: Logger): Reach {
  /** When the first of the consecutive failed attempts started. */
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
