import { setTimeout as sleep } from "node:timers/promises";
import { type APIGatewayBotInfo, Routes } from "discord.js";
import type { Logger } from "pino";
import type { SharedParts } from "../../../src/port/shares.ts";
import { type Api, read } from "../api/client.ts";

const FRESH_MS = 2_500;
const CALL_MS = 15_000;

/** `GET /gateway/bot`: the gateway's URL, the recommended number of shards, and the number of session starts left. */
export interface GatewayInfo {
  /** Rejects in the same cases as `Api.call`. */
  read(): Promise<APIGatewayBotInfo>;
}

export function createGatewayInfo(api: Pick<Api, "call">, closing: AbortSignal): GatewayInfo {
  let last: { at: number; answer: Promise<APIGatewayBotInfo> } | undefined;

  return {
    read() {
      if (last !== undefined && performance.now() - last.at < FRESH_MS) return last.answer;
      const bounded = AbortSignal.any([closing, AbortSignal.timeout(CALL_MS)]);
      const answer = read<unknown>(api, Routes.gatewayBot(), bounded).then(toWholeInfo);
      const asked = { at: performance.now(), answer };
      last = asked;
      answer.catch(() => {
        if (last === asked) last = undefined;
      });
      return answer;
    },
  };
}

/** Used if a server that imitates Discord gives no limit. */
const NO_LIMIT = { total: 1_000, remaining: 1_000, reset_after: 0, max_concurrency: 1 };

export function toWholeInfo(answer: unknown): APIGatewayBotInfo {
  const { shards, session_start_limit: limit, ...info } = answer as APIGatewayBotInfo;
  return { ...info, shards: shards ?? 1, session_start_limit: { ...NO_LIMIT, ...limit } };
}

/**
 * One session per bucket can start every five seconds. The margin is for calls that overtake others.
 * https://docs.discord.com/developers/events/gateway#rate-limiting
 */
const IDENTIFY_MS = 5_500;
/** Skips a turn that Redis grants later than this: the session would start in the next session's turn. */
const LATE_MS = 400;
/** Most late turns to skip. After that, Redis is probably always this slow, so the next turn counts. */
const MAX_LET_GO = 2;
const LOOK_MS = 100;
const AGAIN_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** Resolves when a session of this shard is allowed to start. Rejects only with the signal's reason. */
export type Identify = (shard: number, signal: AbortSignal) => Promise<void>;

export interface IdentifyOptions {
  gateway: GatewayInfo;
  takeTurn: SharedParts["takeTurn"];
  log: Logger;
}

/**
 * Keeps the bot's processes within Discord's limits for session starts, both concurrent and daily. Discord resets the
 * token of a bot that exceeds them.
 */
export function createIdentify({ gateway, takeTurn, log }: IdentifyOptions): Identify {
  let isReported = false;

  /** Milliseconds until the next check. 0 if the session can start now, and "late" if its turn has just passed. */
  async function look(shard: number): Promise<number | "late"> {
    try {
      const { max_concurrency: atOnce, remaining, reset_after: resetMs } = (await gateway.read()).session_start_limit;
      // Other processes can have started as many as `atOnce` sessions since Discord's response.
      if (remaining <= atOnce) {
        if (!isReported) log.error({ remaining, resetMs }, "Discord lets this bot start no more sessions for a while.");
        isReported = true;
        return Math.min(resetMs, LONGEST_PAUSE_MS);
      }
      isReported = false;
      const fromMs = performance.now();
      if (!(await takeTurn(String(shard % atOnce), IDENTIFY_MS))) return LOOK_MS;
      return performance.now() - fromMs > LATE_MS ? "late" : 0;
    } catch (err) {
      log.debug({ err }, "Could not find out yet if a session can start.");
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
