import { type APIMessage, MessageFlags, type RouteLike, Routes } from "discord.js";
import type { ReplyAddress } from "../../../src/port/events.ts";
import type { Api, ApiAnswer, ApiCall } from "../api/client.ts";
import { codeOf } from "../api/error.ts";
import { timeOf } from "../ids.ts";

/** The lifetime of an interaction's token. https://docs.discord.com/developers/interactions/receiving-and-responding */
const TOKEN_MS = 15 * 60_000;

export interface InteractionAddress {
  id: string;
  applicationId: string;
  token: string;
  /** True if only the user sees the answer. The acknowledgement decides this, except after a press. */
  isPrivate: boolean;
  /** True for a pressed button: the original response is its message, which must not be overwritten. */
  isPress: boolean;
  /** Id of the message with the pressed button. The token can edit this message only as the original response. */
  pressedId: string | undefined;
  /** Largest file in the answer, given the user's Nitro and the server's boosts. Undefined if not reported. */
  maxFileBytes: number | undefined;
  /** Unix milliseconds. */
  expiresAt: number;
}

/** When the token expires, in Unix milliseconds: counted from the id's time, or from the arrival if that is later. */
export function expiryOf({ id, receivedAt = 0 }: { id: string; receivedAt?: number | undefined }): number {
  return Math.max(timeOf(id), receivedAt) + TOKEN_MS;
}

/** The fields of an interaction as plain strings, for the address of a reply. */
export function toExtra(interaction: {
  id: string;
  application_id: string;
  token: string;
  isPrivate: boolean;
  isPress: boolean;
  receivedAt: number | undefined;
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

/** Undefined if the reply does not belong to an interaction. */
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

/** The bot stops using the token this long before it expires. */
export const MARGIN_MS = 20_000;
const UNKNOWN_MESSAGE = 10008;
/** Discord also returns this code while an interaction has no first response. */
const UNKNOWN_WEBHOOK = 10015;
/** With these codes, the token cannot write the message: unknown message, unknown webhook, invalid token. */
const PASSED = new Set([UNKNOWN_MESSAGE, UNKNOWN_WEBHOOK, 50027]);

export interface InteractionToken {
  /** Resolves to undefined if the token cannot be used for this message, or is no longer valid. */
  call(
    call: Omit<ApiCall, "isBot" | "route"> & { messageId?: string },
    signal: AbortSignal,
  ): Promise<ApiAnswer | undefined>;
  /** Reads the promised answer, which has no content yet while `isWaiting`. Undefined if it cannot be read. */
  readOriginal(signal: AbortSignal): Promise<{ message: APIMessage; isWaiting: boolean } | undefined>;
}

export const ORIGINAL = "@original";

export interface InteractionTokenDeps {
  api: Api;
  /** Acknowledgements in progress for the interactions that this process received, by token. They never reject. */
  acknowledgements: Pick<Map<string, Promise<unknown>>, "get" | "delete">;
  /** Acknowledges an interaction. Resolves to true if the interaction now has a first response. Never rejects. */
  acknowledge(to: InteractionAddress): Promise<boolean>;
  now(): number;
}

/** The first call acknowledges the interaction if the process that received the interaction died before doing so. */
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

/** Shown in the promised answer while the event cannot be stored: the retries can take ten minutes. */
export const STORE_IS_AWAY =
  "My storage is unavailable. I'll do this as soon as it's back. If you haven't heard from me within ten minutes, please ask again.";

/** True for a promised answer that is still empty. */
export function isWaiting({ flags, content }: Pick<APIMessage, "flags" | "content">): boolean {
  return ((flags ?? 0) & MessageFlags.Loading) !== 0 || content === STORE_IS_AWAY;
}
