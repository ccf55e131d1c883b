import { type APIUser, MessageFlags, MessageReferenceType, MessageType } from "discord.js";
import type { EditedEvent, EventBase, MessageEvent, ReplyAddress } from "../../../src/port/events.ts";
import type { Files } from "../api/files.ts";
import type { RoomKind, Rooms } from "../api/rooms.ts";
import { PLATFORM, timeOf, toMessageId } from "../ids.ts";
import { mayConfigure, toAuthor } from "./people.ts";
import { asksForPicture, firstMention, type Message, readText } from "./wording.ts";

export interface InboundDeps {
  botId: string;
  rooms: Rooms;
  files: Files;
}

/**
 * Undefined if the message does not concern the bot: in a server channel, it must address the bot, unless the bot
 * listens to everything.
 */
export function toMessageEvent(
  message: Message,
  kind: RoomKind,
  deps: InboundDeps,
  isListening = false,
): MessageEvent | undefined {
  if (!isByPerson(message)) return undefined;
  const isOurs = isListening && mayBeOurs(message, kind, deps);
  const namedAddressee = toAddressed(message, kind, deps);
  const addressed = namedAddressee ?? (isOurs ? "bot" : undefined);
  const body = addressed && toBody(message, deps);
  if (addressed === undefined || body === undefined) return undefined;
  // Discord hides the content from a bot without the Message Content intent, so the bot cannot know the subject.
  if (body.text === "" && body.attachments.length === 0) return undefined;
  const repliedId = message.message_reference?.message_id;
  const isReply = kind === "channel" && isReplyHere(message) && repliedId !== undefined;
  const quotes = message.comments_on ?? (isForeignReply(message, deps.botId) ? message.referenced_message : undefined);
  return {
    kind: "message",
    ...toBase(message, kind, deps.rooms),
    key: `${PLATFORM}:${message.id}`,
    messageId: toMessageId({ channelId: message.channel_id, messageId: message.id }),
    ...body,
    addressed,
    ...(namedAddressee === undefined && { isListenedTo: true }),
    ...(isReply && { inReplyTo: toMessageId({ channelId: message.channel_id, messageId: repliedId }) }),
    ...(quotes && { quotes: toMessageId({ channelId: message.channel_id, messageId: quotes.id }) }),
  };
}

function toBase(message: Message, kind: RoomKind, rooms: Rooms): Omit<EventBase, "key"> {
  return {
    conversationId: toConversationId(message.channel_id, message.id, kind),
    author: {
      ...toAuthor(message.author, message.member),
      // Messages can contain commands that need this permission.
      ...(kind !== "direct" && { mayConfigure: mayConfigure(message, rooms) }),
    },
    reply: toReply(message, kind, rooms),
    at: timeOf(message.id),
  };
}

export function toBody(message: Message, deps: InboundDeps): Pick<EditedEvent, "text" | "attachments"> {
  const isOne = deps.rooms.kindOf(message.channel_id, message.guild_id, message.channel_type) !== "channel";
  const text = readText(message, deps, isOne ? "one" : "chain");
  const own = [message, message.comments_on].flatMap((one) => (one === undefined ? [] : deps.files.toRefs(one)));
  const asked = isReplyHere(message) ? message.referenced_message : undefined;
  if (!asked) return { text, attachments: own };
  if (isForeignReply(message, deps.botId)) return { text, attachments: [...own, ...deps.files.toRefs(asked)] };
  // Adds the images of the replied-to message. In a place that is one long conversation, the reply shows which images
  // are meant.
  const areMeant = isOne || asksForPicture(text);
  return { text, attachments: areMeant ? [...own, ...deps.files.toPictureRefs(asked)] : own };
}

/** Fills in fields that Discord omits if empty, and mentions and reply types, which imitations of Discord omit. */
export function toWhole(
  packet: Partial<Message> & Pick<Message, "id" | "channel_id" | "author">,
  botId: string,
): Message {
  const given = withoutNulls(packet);
  const { type = MessageType.Default, content = "", mentions = [], attachments = [], mention_roles = [] } = given;
  const isNamed = mentions.length === 0 && namesUser(content.replaceAll(NO_MENTIONS, " "), botId);
  const { message_id, type: referenceType } = given.message_reference ?? {};
  const isReply = message_id !== undefined && referenceType !== MessageReferenceType.Forward;
  return {
    ...given,
    type: type === MessageType.Default && isReply ? MessageType.Reply : type,
    mentions: isNamed ? [{ id: botId, username: "you" } as APIUser] : mentions,
    content,
    attachments,
    mention_roles,
  } as Message;
}

const ABSENT: ReadonlySet<string> = new Set(["guild_id", "webhook_id", "member"]);

/** Removes null fields, which servers that imitate Discord send instead of omitting them. */
export function withoutNulls<T extends object>(packet: T): T {
  return Object.fromEntries(Object.entries(packet).filter(([name, value]) => value !== null || !ABSENT.has(name))) as T;
}

/** Matches code, and a mention after a backslash. Neither addresses anyone. */
const NO_MENTIONS = /```[\s\S]*?```|``[\s\S]*?``|`[^`]*`|\\<@/g;

/** A conversation in a server channel is named by its first message, any other one by its place. */
export function toConversationId(channelId: string, rootId: string, kind: RoomKind): string {
  return kind === "channel" ? `${PLATFORM}:${channelId}:${rootId}` : `${PLATFORM}:${channelId}`;
}

function toReply(
  { id: messageId, channel_id: channelId, guild_id: guildId }: Message,
  kind: RoomKind,
  rooms: Rooms,
): ReplyAddress {
  const replyToId = toMessageId({ channelId, messageId });
  return {
    ...toPlaceOfReply({ channelId, guildId }, kind, rooms),
    // A direct conversation needs no reply to show which message the bot answers.
    ...(kind !== "direct" && { replyToId }),
    ...(kind === "channel" && { extra: { root: messageId } }),
  };
}

export interface NamedPlace {
  channelId: string;
  guildId: string | undefined;
  /** The channel of a thread. Message events do not include it. */
  parentId?: string | undefined;
}

/**
 * Names a thread together with its channel, because the channel's settings apply in the thread. The gateway lists an
 * archived thread only after a user writes in it. Until then, the event names the channel.
 */
export function toPlaceOfReply({ channelId, ...named }: NamedPlace, kind: RoomKind, rooms: Rooms): ReplyAddress {
  const parentId = kind === "thread" ? (rooms.parentOf(channelId) ?? named.parentId) : undefined;
  const guildId = rooms.guildIdOf(channelId) ?? named.guildId;
  const categoryId = kind === "direct" ? undefined : (rooms.categoryOf(channelId) ?? rooms.categoryOf(parentId ?? ""));
  return {
    platform: PLATFORM,
    ...(kind === "direct" && { isDirect: true }),
    ...(categoryId !== undefined && { categoryId }),
    ...(parentId === undefined ? { channelId } : { channelId: parentId, threadId: channelId }),
    ...(guildId !== undefined && { workspaceId: guildId }),
  };
}

/** The types of messages that a user or an app writes and everyone sees. */
const WRITTEN: ReadonlySet<MessageType> = new Set([
  MessageType.Default,
  MessageType.Reply,
  MessageType.ChatInputCommand,
  MessageType.ContextMenuCommand,
  MessageType.PollResult,
]);

export function isWritten({ type, flags }: Message): boolean {
  return WRITTEN.has(type) && ((flags ?? 0) & MessageFlags.Ephemeral) === 0;
}

export function isByPerson(message: Message): boolean {
  const { author, type, webhook_id } = message;
  const isTyped = type === MessageType.Default || type === MessageType.Reply;
  const isBots = author.bot === true || author.system === true || webhook_id !== undefined;
  return isTyped && isWritten(message) && !isBots;
}

function toAddressed(message: Message, kind: RoomKind, deps: InboundDeps): MessageEvent["addressed"] | undefined {
  const { botId, rooms } = deps;
  if (kind === "direct") return "bot";
  const roleId = rooms.botRoleId(message.guild_id);
  // Checks the text, because the list of mentions also contains the author of the message that this one replies to.
  const isNamed = message.mentions.some(({ id }) => id === botId) && namesUser(message.content, botId);
  if (isNamed || (roleId !== undefined && message.mention_roles.includes(roleId))) return "bot";
  const first = firstMention(message.content);
  if (first !== undefined && first !== botId && message.mentions.some(({ id }) => id === first)) {
    return kind === "thread" || repliesToBot(message, botId) ? "other" : undefined;
  }
  if (repliesToBot(message, botId)) return "bot";
  if (kind === "channel") return undefined;
  return isForeignReply(message, botId) ? "other" : "open";
}

/** True for a user's message in a channel that addresses no one. The bot answers it if it listens to the channel. */
export function mayBeOurs(message: Message, kind: RoomKind, deps: InboundDeps): boolean {
  if (kind !== "channel" || !isByPerson(message) || isForeignReply(message, deps.botId)) return false;
  return toAddressed(message, kind, deps) === undefined && firstMention(message.content) === undefined;
}

function namesUser(content: string, id: string): boolean {
  return content.includes(`<@${id}>`) || content.includes(`<@!${id}>`);
}

function repliesToBot(message: Message, botId: string): boolean {
  return isReplyHere(message) && message.referenced_message?.author.id === botId;
}

/** True for a reply to someone other than the bot and the author. */
function isForeignReply(message: Message, botId: string): boolean {
  const repliedTo = message.referenced_message?.author.id;
  return isReplyHere(message) && repliedTo !== undefined && repliedTo !== botId && repliedTo !== message.author.id;
}

export function isReplyHere({ type, message_reference, channel_id }: Message): boolean {
  return type === MessageType.Reply && (message_reference?.channel_id ?? channel_id) === channel_id;
}
