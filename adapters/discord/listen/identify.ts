import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { SharedParts } from "../../../src/concurrency/shares.ts";
import type { GatewayInfo } from "./gateway-info.ts";

/**
 * One session of a bucket may begin every five seconds, plus a margin for calls that overtake others on their way.
 * https://docs.discord.com/developers/events/gateway#rate-limiting
 */
const IDENTIFY_MS = 5_500;
/** A turn that this process hears of later than that may be the next one's too before its session begins. */
const LATE_MS = 400;
/** Late turns that are let go. Then Redis is always so slow, and the next one is used. */
const MAX_LET_GO = 2;
const LOOK_MS = 100;
const AGAIN_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/** Resolves when a session of this shard may begin. Rejects only with the signal's reason. */
export type Identify = (shard: number, signal: AbortSignal) => Promise<void>;

export interface IdentifyOptions {
  gateway: GatewayInfo;
  takeTurn: SharedParts["takeTurn"];
  log: Logger;
}

/**
 * Keeps all processes of the bot within Discord's limits of sessions, at once and per day. Discord resets the token of a
 * bot that begins more.
 */
export function createIdentify({ gateway, takeTurn, log }: IdentifyOptions): Identify {
  let isTold = false;

  /** Milliseconds until the next look; 0: the session may begin; "late": it might have, a moment ago. */
  async function look(shard: number): Promise<number | "late"> {
    try {
      const { max_concurrency: atOnce, remaining, reset_after: resetMs } = (await gateway.read()).session_start_limit;
      // As many may have begun since Discord was asked.
      if (remaining <= atOnce) {
        if (!isTold) log.error({ remaining, resetMs }, "Discord lets this bot begin no more sessions for a while.");
        isTold = true;
        return Math.min(resetMs, LONGEST_PAUSE_MS);
      }
      isTold = false;
      const fromMs = performance.now();
      if (!(await takeTurn(String(shard % atOnce), IDENTIFY_MS))) return LOOK_MS;
      return performance.now() - fromMs > LATE_MS ? "late" : 0;
    } catch (err) {
      log.debug({ err }, "It is not known yet if a session may begin.");
      return AGAIN_MS;
    }
  }

  return async (shard, signal) => {
    for (let letGo = 0; ; ) {
      const waitMs = await look(shard);
      signal.throwIfAborted();
      if (waitMs === 0 || (waitMs === "late" && letGo++ >= MAX_LET_GO)) return;
      await sleep(waitMs === "late" ? LOOK_MS : waitMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  };
}
