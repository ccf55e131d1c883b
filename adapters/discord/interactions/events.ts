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
import type { Actor, ImagineOptions } from "../../../src/port/catalogue.ts";
import type {
  ActionEvent,
  Author,
  CommandEvent,
  EventBase,
  MessageEvent,
  PressedAction,
  ReplyAddress,
} from "../../../src/port/events.ts";
import { toLine } from "../../../src/text/quote-name.ts";
import type { Files } from "../api/files.ts";
import type { RoomKind, Rooms } from "../api/rooms.ts";
import { PLATFORM, timeOf, toMessageId } from "../ids.ts";
import { type NamedPlace, toAuthor, toConversationId, toPlaceOfReply } from "../listen/inbound.ts";
import { readSeen, toWords } from "../listen/wording.ts";
import { toExtra } from "../write/interaction-token.ts";
import type { Press } from "../write/message-body.ts";
import { IMAGINE, imageNames, MAX_IMAGES, MODEL, MODEL_NAME, PERSON, PERSONA } from "./commands.ts";

/** The fields of `/imagine` that are options of the picture. */
const CHOSEN = ["ratio", "size", "count", "model", "spoiler"] as const satisfies (keyof ImagineOptions)[];

export interface InteractionEventDeps {
  rooms: Rooms;
  files: Files;
}

/** An interaction on its way to an event. */
export interface PendingInteraction {
  interaction:
    | APIChatInputApplicationCommandInteraction
    | APIMessageApplicationCommandInteraction
    | APIMessageComponentInteraction
    | APIModalSubmitInteraction;
  isPrivate: boolean;
  /** Its answer is written with its token; else it goes into the channel like any other. */
  hasToken?: boolean;
  /** Unix milliseconds. */
  heardAt?: number;
  /** It belongs to a button, whose message stays as it is: true for a button itself. */
  isPress?: true;
}

export function toAskEvent(pending: PendingInteraction, deps: InteractionEventDeps): MessageEvent {
  const interaction = pending.interaction as APIChatInputApplicationCommandInteraction;
  const options = readOptions(interaction);
  const file = interaction.data.resolved?.attachments?.[String(options["image"])];
  const mentions = Object.values(interaction.data.resolved?.users ?? {});
  const prompt = toWords(String(options["prompt"] ?? ""), { mentions, guild_id: interaction.guild_id }, deps);
  return toQuestion(pending, deps, prompt, file === undefined ? [] : [file]);
}

/** Quotes the message that is asked about: it may be anybody's, of any time, and in a channel that the bot cannot read. */
export function toAskAboutEvent(
  pending: PendingInteraction,
  { data, guild_id }: APIMessageApplicationCommandInteraction,
  deps: InteractionEventDeps,
): MessageEvent {
  const message = data.resolved.messages[data.target_id];
  if (message === undefined) return toQuestion(pending, deps, "What about this message? It could not be read.", []);
  const name = message.author.global_name ?? message.author.username;
  const words = readSeen({ ...message, ...(guild_id !== undefined && { guild_id }) }, deps);
  const quoted = words.trim().replace(/^/gm, "> ");
  const text = `Explain or answer this message of ${toLine(name)}:\n${quoted}`;
  const question = toQuestion(pending, deps, text, [], deps.files.toPostedRefs(message));
  return {
    ...question,
    quotes: toMessageId({ channelId: placeOf(pending.interaction).channelId, messageId: message.id }),
  };
}

export function toCommandEvent(pending: PendingInteraction, deps: InteractionEventDeps): CommandEvent {
  const interaction = pending.interaction as APIChatInputApplicationCommandInteraction;
  const kind = kindOf(interaction, deps);
  const { channelId } = placeOf(interaction);
  const isModel = interaction.data.name === MODEL;
  const { [PERSON]: person, ...options } = readOptions(interaction);
  const values = Object.entries(options).map(([name, value]) =>
    // People elsewhere write them behind the name.
    isModel && name !== MODEL_NAME ? `--${name} ${value}` : String(value),
  );
  // The person comes first, in whatever order the fields were filled.
  if (person !== undefined) values.unshift(`person:${person}`);
  return {
    kind: "command",
    ...toBase(pending, deps),
    // A command given in a channel is about the channel.
    conversationId: kind === "channel" ? `${PLATFORM}:${channelId}` : toConversationId(channelId, interaction.id, kind),
    name: interaction.data.name,
    text: values.join(" ").trim(),
  };
}

/** A submitted form of `/persona` becomes that command, with the form's fields as options. */
export function toPersonaEvent(
  pending: PendingInteraction,
  options: Readonly<Record<string, string>>,
  deps: InteractionEventDeps,
): CommandEvent {
  return { kind: "command", ...toBase(pending, deps), name: PERSONA, text: "", options };
}

export function toActionEvent(
  pending: PendingInteraction,
  interaction: APIMessageComponentInteraction | APIModalSubmitInteraction,
  { action, turnId, root }: Press & { action: PressedAction },
  deps: InteractionEventDeps,
): ActionEvent {
  const base = toBase(pending, deps);
  const { channelId } = placeOf(interaction);
  const rootId =
    root ?? interaction.message?.message_reference?.message_id ?? interaction.message?.id ?? interaction.id;
  const conversationId = toConversationId(channelId, rootId, kindOf(interaction, deps));
  return { kind: "action", ...base, conversationId, action, turnId };
}

export interface PictureRequest {
  prompt: string;
  /** By the names of `ImagineOptions`. */
  options: Readonly<Record<string, string>>;
  attachments: CommandEvent["attachments"] & object;
}

/** A request for a picture, from any form or menu, becomes the command `/imagine`. */
export function toImagineEvent(
  pending: PendingInteraction,
  { prompt, options, attachments }: PictureRequest,
  deps: InteractionEventDeps,
): CommandEvent {
  return { kind: "command", ...toBase(pending, deps), name: IMAGINE, text: prompt, options, attachments };
}

/** Reads the fields of `/imagine`. */
export function toPictureRequest(
  interaction: APIChatInputApplicationCommandInteraction,
  deps: InteractionEventDeps,
): PictureRequest {
  const given = readOptions(interaction);
  const files = interaction.data.resolved?.attachments ?? {};
  const options = CHOSEN.flatMap((name) => (given[name] === undefined ? [] : [[name, String(given[name])] as const]));
  const images = imageNames(MAX_IMAGES).flatMap((name) => files[String(given[name])] ?? []);
  return {
    prompt: String(given["prompt"] ?? ""),
    options: Object.fromEntries(options),
    attachments: deps.files.toLinkedRefs(images),
  };
}

/** The person behind an interaction, and the place. */
export function toActor(interaction: PendingInteraction["interaction"], deps: InteractionEventDeps): Actor {
  return {
    author: readAuthor(interaction),
    reply: toPlaceOfReply(placeOf(interaction), kindOf(interaction, deps), deps.rooms),
  };
}

/** True where the message with the button or the form is ephemeral. */
export function isOnEphemeral({ message }: Pick<APIInteraction, "message">): boolean {
  return ((message?.flags ?? 0) & MessageFlags.Ephemeral) !== 0;
}

/** Values by name, sub-commands left out. */
export function readOptions({
  data,
}: APIChatInputApplicationCommandInteraction): Record<string, string | number | boolean> {
  return Object.fromEntries((data.options ?? []).map((option) => [option.name, "value" in option ? option.value : ""]));
}

function toQuestion(
  pending: PendingInteraction,
  deps: InteractionEventDeps,
  text: string,
  linked: readonly APIAttachment[],
  attachments: MessageEvent["attachments"] = [],
): MessageEvent {
  const { interaction } = pending;
  return {
    kind: "message",
    ...toBase(pending, deps),
    messageId: toMessageId({ channelId: placeOf(interaction).channelId, messageId: interaction.id }),
    text,
    attachments: [...attachments, ...deps.files.toLinkedRefs(linked)],
    addressed: "bot",
    isAnsweredAlone: true,
  };
}

function toBase(pending: PendingInteraction, deps: InteractionEventDeps): EventBase {
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
  const { interaction, isPrivate, hasToken, heardAt } = pending;
  const isPress = pending.isPress === true || interaction.type === InteractionType.MessageComponent;
  const kind = kindOf(interaction, deps);
  return {
    ...toPlaceOfReply(placeOf(interaction), kind, deps.rooms),
    ...(isPrivate && { visibleTo: author.id }),
    extra: {
      ...(kind === "channel" && { root: interaction.id }),
      ...(hasToken === true && toExtra({ ...interaction, isPrivate, isPress, heardAt })),
    },
  };
}

function kindOf(interaction: PendingInteraction["interaction"], { rooms }: InteractionEventDeps): RoomKind {
  const { channelId, guildId, type } = placeOf(interaction);
  return rooms.kindOf(channelId, guildId, type);
}

/** Discord may leave the channel out of an interaction, but not its id. */
export function placeOf(interaction: APIInteraction): NamedPlace & { type: ChannelType | undefined } {
  const { channel, channel_id: channelId = channel?.id, guild_id: guildId } = interaction;
  if (channelId === undefined) throw new TypeError("An interaction came without the channel in which it began.");
  const parentId = channel !== undefined && "parent_id" in channel ? (channel.parent_id ?? undefined) : undefined;
  return { channelId, guildId, parentId, type: channel?.type };
}

function readAuthor({ user, member, guild_id: guildId }: APIInteraction): Author {
  const person = member?.user ?? user;
  if (person === undefined) throw new TypeError("An interaction came without the person who began it.");
  const permissions = BigInt(member?.permissions ?? 0);
  const may = (bit: bigint) => (permissions & (bit | PermissionFlagsBits.Administrator)) !== 0n;
  return {
    ...toAuthor(person, member),
    ...(may(PermissionFlagsBits.ManageMessages) && { isModerator: true }),
    // In a direct conversation there is nobody else to ask.
    ...((member !== undefined || guildId !== undefined) && { mayConfigure: may(PermissionFlagsBits.ManageChannels) }),
  };
}
