import { type APIMessage, MessageFlags, type RouteLike, Routes } from "discord.js";
import type { Answer } from "../api/answer.ts";
import type { Api, ApiCall } from "../api/client.ts";
import { codeOf } from "../api/error.ts";
import type { InteractionAddress } from "./interaction-address.ts";

/** The token is not used for what would arrive at its very end. */
export const MARGIN_MS = 20_000;
const UNKNOWN_MESSAGE = 10008;
/** Unknown message, unknown webhook, invalid token: nothing can be written this way (any more). */
const PASSED = new Set([UNKNOWN_MESSAGE, 10015, 50027]);

/** What an interaction's token allows, for the fifteen minutes that it lives. */
export interface InteractionToken {
  /** Makes a call with the token; undefined where that way is closed, for this message or for good. */
  call(
    call: Omit<ApiCall, "isBot" | "route"> & { messageId?: string },
    signal: AbortSignal,
  ): Promise<Answer | undefined>;
  /** The answer that the acknowledgement promised, or nothing where it still waits to be written. */
  readOriginal(signal: AbortSignal): Promise<{ message: APIMessage; isWaiting: boolean } | undefined>;
}

/** The message that an acknowledgement promised. */
export const ORIGINAL = "@original";

export function createInteractionToken(
  { applicationId, token, expiresAt }: InteractionAddress,
  { api, now }: { api: Api; now(): number },
): InteractionToken {
  let isExpired = false;

  function routeOf(messageId: string | undefined): RouteLike {
    if (messageId === undefined) return Routes.webhook(applicationId, token);
    return Routes.webhookMessage(applicationId, token, messageId);
  }

  const call: InteractionToken["call"] = async ({ messageId, ...rest }, signal) => {
    if (isExpired || now() > expiresAt - MARGIN_MS) return undefined;
    try {
      return await api.call({ ...rest, route: routeOf(messageId), isBot: false }, signal);
    } catch (error) {
      if (!PASSED.has(codeOf(error))) throw error;
      if (codeOf(error) !== UNKNOWN_MESSAGE) isExpired = true;
      return undefined;
    }
  };

  return {
    call,
    async readOriginal(signal) {
      const answer = await call({ method: "GET", messageId: ORIGINAL }, signal);
      if (answer === undefined) return undefined;
      const message = answer.data as APIMessage;
      return { message, isWaiting: ((message.flags ?? 0) & MessageFlags.Loading) !== 0 };
    },
  };
}
