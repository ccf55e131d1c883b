import type { ReplyAddress } from "../../../src/port/events.ts";
import { timeOf } from "../ids.ts";

/** How long an interaction's token lives. https://docs.discord.com/developers/interactions/receiving-and-responding */
const TOKEN_MS = 15 * 60_000;

/** What writing the answer to an interaction needs. */
export interface InteractionAddress {
  id: string;
  applicationId: string;
  token: string;
  /** Only one person sees the answer: fixed by the acknowledgement, except of a pressed button, which promised none. */
  isPrivate: boolean;
  /** A pressed button: what was acknowledged is the message with the button, which is not to be overwritten. */
  isPress: boolean;
  /** The message with the pressed button, which the token reaches as the original answer alone. */
  pressedId: string | undefined;
  /** Unix milliseconds. */
  expiresAt: number;
}

/** When the token of the interaction with this id ends, Unix milliseconds. */
export function expiryOf(interactionId: string): number {
  return timeOf(interactionId) + TOKEN_MS;
}

/** As plain strings, for the address of a reply. */
export function toExtra(interaction: {
  id: string;
  application_id: string;
  token: string;
  isPrivate: boolean;
  isPress: boolean;
  message?: { id: string } | undefined;
}): NonNullable<ReplyAddress["extra"]> {
  return {
    interactionId: interaction.id,
    applicationId: interaction.application_id,
    token: interaction.token,
    expiresAt: String(expiryOf(interaction.id)),
    ...(interaction.isPrivate && { isPrivate: "yes" }),
    ...(interaction.isPress && { isPress: "yes" }),
    ...(interaction.isPress && interaction.message !== undefined && { pressedId: interaction.message.id }),
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
  };
}
