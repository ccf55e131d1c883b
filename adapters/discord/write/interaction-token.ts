import { type APIMessage, MessageFlags, type RouteLike, Routes } from "discord.js";
import type { ReplyAddress } from "../../../src/port/events.ts";
import type { Api, ApiAnswer, ApiCall } from "../api/client.ts";
import { codeOf } from "../api/error.ts";
import { timeOf } from "../ids.ts";

/** The life of an interaction's token. https://docs.discord.com/developers/interactions/receiving-and-responding */
const TOKEN_MS = 15 * 60_000;

/** Everything that is needed to write the answer to an interaction. */
export interface InteractionAddress {
  id: string;
  applicationId: string;
  token: string;
  /** The answer is ephemeral. The acknowledgement fixes that, except for a pressed button, which promises no answer. */
  isPrivate: boolean;
  /** A pressed button: the original answer is the message with the button, which must not be overwritten. */
  isPress: boolean;
  /** The message with the pressed button, which the token reaches as the original answer alone. */
  pressedId: string | undefined;
  /** Largest file that the answer can bring: the person's Nitro and the server's boosts count. Undefined: not told. */
  maxFileBytes: number | undefined;
  /** Unix milliseconds. */
  expiresAt: number;
}

/**
 * Returns when the token of an interaction ends, Unix milliseconds. Nobody hears of an interaction later than at once, so
 * the time at which it was heard holds where this clock is ahead, or where an id tells no time.
 */
export function expiryOf({ id, heardAt = 0 }: { id: string; heardAt?: number | undefined }): number {
  return Math.max(timeOf(id), heardAt) + TOKEN_MS;
}

/** Writes an interaction as plain strings, for the address of a reply. */
export function toExtra(interaction: {
  id: string;
  application_id: string;
  token: string;
  isPrivate: boolean;
  isPress: boolean;
  heardAt: number | undefined;
  message?: { id: string } | undefined;
  attachment_size_limit?: number;
}): NonNullable<ReplyAddress["extra"]> {
  return {
    interactionId: interaction.id,
    applicationId: interaction.application_id,
    token: interaction.token,
    expiresAt: String(expiryOf(interaction)),
    ...(interaction.isPrivate && { isPrivate: "yes" }),
    ...(interaction.isPress && { isPress: "yes" }),
    ...(interaction.isPress && interaction.message !== undefined && { pressedId: interaction.message.id }),
    ...(interaction.attachment_size_limit && { maxFileBytes: String(interaction.attachment_size_limit) }),
  };
}

/** Undefined for a reply that answers no interaction. */
export function readInteractionAddress({ extra = {}, visibleTo }: ReplyAddress): InteractionAddress | undefined {
  const { interactionId: id, applicationId, token, expiresAt } = extra;
  if (id === undefined || applicationId === undefined || token === undefined || expiresAt === undefined)
    return undefined;
  const isPress = extra["isPress"] === "yes";
  return {
    id,
    applicationId,
    token,
    expiresAt: Number(expiresAt),
    isPrivate: isPress ? visibleTo !== undefined : extra["isPrivate"] === "yes",
    isPress,
    pressedId: extra["pressedId"],
    maxFileBytes: Number(extra["maxFileBytes"]) || undefined,
  };
}

/** The token is not used any more this close to its end. */
export const MARGIN_MS = 20_000;
const UNKNOWN_MESSAGE = 10008;
/** Discord also answers so while an interaction has no first answer yet. */
const UNKNOWN_WEBHOOK = 10015;
/** Unknown message, unknown webhook, invalid token: nothing can be written this way (any more). */
const PASSED = new Set([UNKNOWN_MESSAGE, UNKNOWN_WEBHOOK, 50027]);

/** Calls with an interaction's token, for the fifteen minutes that it lives. */
export interface InteractionToken {
  /** Makes a call with the token; undefined where that way is closed, for this message or for good. */
  call(
    call: Omit<ApiCall, "isBot" | "route"> & { messageId?: string },
    signal: AbortSignal,
  ): Promise<ApiAnswer | undefined>;
  /** The answer that the acknowledgement promised, or nothing where it still waits to be written. */
  readOriginal(signal: AbortSignal): Promise<{ message: APIMessage; isWaiting: boolean } | undefined>;
}

/** The message that an acknowledgement promised. */
export const ORIGINAL = "@original";

export interface InteractionTokenDeps {
  api: Api;
  /** By token, the acknowledgements that this process is making, for the interactions that it heard itself. Never reject. */
  acknowledgements: Pick<Map<string, Promise<unknown>>, "get" | "delete">;
  /** Gives an interaction its first answer; resolves to whether it has one then. Never rejects. */
  acknowledge(to: InteractionAddress): Promise<boolean>;
  now(): number;
}

/** The process that heard the interaction may have ended before acknowledging it; then the first call makes up for that. */
export function createInteractionToken(to: InteractionAddress, deps: InteractionTokenDeps): InteractionToken {
  const { applicationId, token, expiresAt } = to;
  const { api, acknowledgements, now } = deps;
  let isExpired = false;
  let isKnown = false;

  function routeOf(messageId: string | undefined): RouteLike {
    if (messageId === undefined) return Routes.webhook(applicationId, token);
    return Routes.webhookMessage(applicationId, token, messageId);
  }

  const call: InteractionToken["call"] = async ({ messageId, ...rest }, signal) => {
    await acknowledgements.get(token);
    for (;;) {
      if (isExpired || now() > expiresAt - MARGIN_MS) return undefined;
      try {
        return await api.call({ ...rest, route: routeOf(messageId), isBot: false }, signal);
      } catch (error) {
        if (!PASSED.has(codeOf(error))) throw error;
        const isNew = !isKnown && codeOf(error) === UNKNOWN_WEBHOOK;
        isKnown = true;
        if (isNew && (await deps.acknowledge(to))) continue;
        if (codeOf(error) !== UNKNOWN_MESSAGE) isExpired = true;
        return undefined;
      }
    }
  };

  return {
    call,
    async readOriginal(signal) {
      const answer = await call({ method: "GET", messageId: ORIGINAL }, signal);
      if (answer === undefined) return undefined;
      const message = answer.data as APIMessage;
      return { message, isWaiting: isWaiting(message) };
    },
  };
}

/** Stands in for the answer until it comes: an event that cannot be stored is offered again for ten minutes. */
export const STORE_IS_AWAY =
  "My memory is out of reach right now. I will do this as soon as it is back. If nothing has come within ten minutes, please ask again.";

/** True for the original answer of an acknowledgement while nothing of an answer has been written into it. */
export function isWaiting({ flags, content }: Pick<APIMessage, "flags" | "content">): boolean {
  return ((flags ?? 0) & MessageFlags.Loading) !== 0 || content === STORE_IS_AWAY;
}
