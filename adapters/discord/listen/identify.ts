import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { ShardShares } from "../options.ts";
import type { GatewayInfo } from "./gateway-info.ts";

/** Sessions of one bucket may begin once in five seconds; on their way some catch up with those before them. */
const IDENTIFY_MS = 5_500;
const LOOK_MS = 100;
const AGAIN_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/** Resolves when a session of this shard may begin. Rejects only with the signal's reason. */
export type Identify = (shard: number, signal: AbortSignal) => Promise<void>;

export interface IdentifyOptions {
  gateway: GatewayInfo;
  takeTurn: ShardShares["takeTurn"];
  log: Logger;
}

/**
 * Keeps to Discord's limits of sessions, among all processes of the bot: so many at once, and so many a day. A bot that
 * begins more of them loses its token.
 */
export function createIdentify({ gateway, takeTurn, log }: IdentifyOptions): Identify {
  let isTold = false;

  /** How long to wait before the next look; 0: it may begin. */
  async function look(shard: number): Promise<number> {
    try {
      const { max_concurrency: atOnce, remaining, reset_after: resetMs } = (await gateway.read()).session_start_limit;
      // As many may have begun since Discord was asked.
      if (remaining <= atOnce) {
        if (!isTold) log.error({ remaining, resetMs }, "Discord lets this bot begin no more sessions for a while.");
        isTold = true;
        return Math.min(resetMs, LONGEST_PAUSE_MS);
      }
      isTold = false;
      return (await takeTurn(String(shard % atOnce), IDENTIFY_MS)) ? 0 : LOOK_MS;
    } catch (err) {
      log.debug({ err }, "Whether a session may begin is not known yet.");
      return AGAIN_MS;
    }
  }

  return async (shard, signal) => {
    for (;;) {
      const waitMs = await look(shard);
      signal.throwIfAborted();
      if (waitMs === 0) return;
      await sleep(waitMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  };
}
