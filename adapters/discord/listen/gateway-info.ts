import { type APIGatewayBotInfo, REST, Routes } from "discord.js";
import type { DiscordAdapterOptions } from "../options.ts";

/** An answer is reused for this long. */
const FRESH_MS = 2_500;

/** `GET /gateway/bot`: the gateway's address, the recommended number of shards, and the sessions left to begin. */
export interface GatewayInfo {
  /** Rejects as the library's REST client does. */
  read(): Promise<APIGatewayBotInfo>;
}

export function createGatewayInfo({ token, apiUrl }: Pick<DiscordAdapterOptions, "token" | "apiUrl">): GatewayInfo {
  const rest = new REST({ ...(apiUrl !== undefined && { api: apiUrl }), version: "10" }).setToken(token);
  let last: { at: number; answer: Promise<APIGatewayBotInfo> } | undefined;

  return {
    read() {
      if (last !== undefined && performance.now() - last.at < FRESH_MS) return last.answer;
      const asked = { at: performance.now(), answer: rest.get(Routes.gatewayBot()).then(toWholeInfo) };
      last = asked;
      asked.answer.catch(() => {
        if (last === asked) last = undefined;
      });
      return asked.answer;
    },
  };
}

/** The limit where a stand-in for Discord names none. */
const NO_LIMIT = { total: 1_000, remaining: 1_000, reset_after: 0, max_concurrency: 1 };

/** The answer to `GET /gateway/bot`, with all that is read of it. */
export function toWholeInfo(answer: unknown): APIGatewayBotInfo {
  const { shards, session_start_limit: limit, ...info } = answer as APIGatewayBotInfo;
  return { ...info, shards: shards ?? 1, session_start_limit: { ...NO_LIMIT, ...limit } };
}
