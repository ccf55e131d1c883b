import {
  type APIAttachment,
  type APIChatInputApplicationCommandInteraction,
  type APIInteraction,
  type APIMessageApplicationCommandInteraction,
  type APIMessageComponentInteraction,
  type APIModalSubmitInteraction,
  type ChannelType,
  InteractionType,
  MessageFlags,
  PermissionFlagsBits,
} from "discord.js";
import type { Actor } from "../../../src/port/catalogue.ts";
import type {
  ActionEvent,
  Author,
  CommandEvent,
  EventBase,
  MessageEvent,
  PressedAction,
  ReplyAddress,
} from "../../../src/port/events.ts";
import type { Files } from "../api/files.ts";
import type { RoomKind, Rooms } from "../api/rooms.ts";
import { type NamedPlace, toConversationId, toPlaceOfReply } from "../hear/inbound.ts";
import { toAuthor } from "../hear/people.ts";
import { PLATFORM, timeOf, toMessageId } from "../ids.ts";
import type { Press } from "../write/draft.ts";
import { toExtra } from "../write/interaction-token.ts";

export interface InteractionEventDeps {
  rooms: Rooms;
  files: Files;
}

export interface PendingInteraction {
  interaction:
    | APIChatInputApplicationCommandInteraction
    | APIMessageApplicationCommandInteraction
    | APIMessageComponentInteraction
    | APIModalSubmitInteraction;
  isPrivate: boolean;
  /** True if the answer uses the interaction's token, false if the bot writes to the channel as usual. */
  hasToken?: boolean;
  /** Unix milliseconds. */
  receivedAt?: number;
  /** True for a button, and for a form that a button opened. The button's message then does not change. */
  isPress?: true;
}

export function toActor(interaction: PendingInteraction["interaction"], deps: InteractionEventDeps): Actor {
  return {
    author: readAuthor(interaction),
    reply: toPlaceOfReply(placeOf(interaction), kindOf(interaction, deps), deps.rooms),
  };
}

export function isOnPrivate({ message }: Pick<APIInteraction, "message">): boolean {
  return ((message?.flags ?? 0) & MessageFlags.Ephemeral) !== 0;
}

export function toQuestion(
  pending: PendingInteraction,
  deps: InteractionEventDeps,
  text: string,
  linked: readonly APIAttachment[],
  attachments: MessageEvent["attachments"] = [],
): MessageEvent {
  const { interaction } = pending;
  return {
    kind: "message",
    ...toEventBase(pending, deps),
    messageId: toMessageId({ channelId: placeOf(interaction).channelId, messageId: interaction.id }),
    text,
    attachments: [...attachments, ...deps.files.toLinkedRefs(linked)],
    addressed: "bot",
    isAnsweredAlone: true,
  };
}

/** A command that applies to its channel. */
export function toCommandEvent(
  pending: PendingInteraction,
  given: Pick<CommandEvent, "name" | "text">,
  deps: InteractionEventDeps,
): CommandEvent {
  const { interaction } = pending;
  const kind = kindOf(interaction, deps);
  const { channelId } = placeOf(interaction);
  const conversationId =
    kind === "channel" ? `${PLATFORM}:${channelId}` : toConversationId(channelId, interaction.id, kind);
  return { kind: "command", ...toEventBase(pending, deps), conversationId, ...given };
}

/** A press of a button, or a form that a button opened. */
export function toActionEvent(
  pending: PendingInteraction,
  interaction: APIMessageComponentInteraction | APIModalSubmitInteraction,
  { action, turnId, root }: Press & { action: PressedAction },
  deps: InteractionEventDeps,
): ActionEvent {
  const base = toEventBase(pending, deps);
  const { channelId } = placeOf(interaction);
  const rootId =
    root ?? interaction.message?.message_reference?.message_id ?? interaction.message?.id ?? interaction.id;
  const conversationId = toConversationId(channelId, rootId, kindOf(interaction, deps));
  return { kind: "action", ...base, conversationId, action, turnId };
}

export function toEventBase(pending: PendingInteraction, deps: InteractionEventDeps): EventBase {
  const { interaction } = pending;
  const author = readAuthor(interaction);
  return {
    key: `${PLATFORM}:${interaction.id}`,
    conversationId: toConversationId(placeOf(interaction).channelId, interaction.id, kindOf(interaction, deps)),
    author,
    reply: toReply(pending, author, deps),
    at: timeOf(interaction.id),
  };
}

function toReply(pending: PendingInteraction, author: Author, deps: InteractionEventDeps): ReplyAddress {
  const { interaction, isPrivate, hasToken, receivedAt } = pending;
  const isPress = pending.isPress === true || interaction.type === InteractionType.MessageComponent;
  const kind = kindOf(interaction, deps);
  return {
    ...toPlaceOfReply(placeOf(interaction), kind, deps.rooms),
    ...(isPrivate && { visibleTo: author.id }),
    extra: {
      ...(kind === "channel" && { root: interaction.id }),
      ...(hasToken === true && toExtra({ ...interaction, isPrivate, isPress, receivedAt })),
    },
  };
}

function kindOf(interaction: PendingInteraction["interaction"], { rooms }: InteractionEventDeps): RoomKind {
  const { channelId, guildId, type } = placeOf(interaction);
  return rooms.kindOf(channelId, guildId, type);
}

/** Interactions always have the channel's id, but not always the channel object. */
export function placeOf(interaction: APIInteraction): NamedPlace & { type: ChannelType | undefined } {
  const { channel, channel_id: channelId = channel?.id, guild_id: guildId } = interaction;
  if (channelId === undefined) throw new TypeError("An interaction has no channel.");
  const parentId = channel !== undefined && "parent_id" in channel ? (channel.parent_id ?? undefined) : undefined;
  return { channelId, guildId, parentId, type: channel?.type };
}

function readAuthor({ user, member, guild_id: guildId }: APIInteraction): Author {
  const person = member?.user ?? user;
  if (person === undefined) throw new TypeError("An interaction has no user.");
  const permissions = BigInt(member?.permissions ?? 0);
  const may = (bit: bigint) => (permissions & (bit | PermissionFlagsBits.Administrator)) !== 0n;
  return {
    ...toAuthor(person, member),
    ...(may(PermissionFlagsBits.ManageMessages) && { isModerator: true }),
    // Absent in a direct conversation, where the person can change everything.
    ...((member !== undefined || guildId !== undefined) && { mayConfigure: may(PermissionFlagsBits.ManageChannels) }),
  };
}
