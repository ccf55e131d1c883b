import type {
  ActionEvent,
  Author,
  CommandEvent,
  InboundEvent,
  MessageEvent,
  PressedAction,
  ReplyAddress,
} from "../../../src/port/events.ts";
import { PLATFORM, toAttachments, toMessageId } from "../ids.ts";
import { findMentions } from "../page/mentions.ts";
import type { ChannelKind, ImagineOptions, MessageRow } from "../page/wire.ts";

/** Somebody does something to a message, at a place. */
export interface Deed {
  /** Made by the browser for this deed, the same when it is sent again. */
  nonce: string;
  message: Pick<MessageRow, "id" | "channelId" | "threadId" | "files">;
  channelKind: ChannelKind;
  author: Author;
  at: number;
}

type Place = Pick<MessageRow, "channelId" | "threadId">;

/** Who can be mentioned. */
export interface Names {
  botName: string;
  people: readonly string[];
}

/** In a direct chat all messages are one conversation; in a channel each thread is, named by its first message. */
function toConversationId({ message, channelKind }: Pick<Deed, "message" | "channelKind">): string {
  const { channelId, threadId, id } = message;
  return channelKind === "chat" ? `local:${channelId}` : `local:${channelId}:${threadId ?? id}`;
}

/** Undefined for a message in a channel that is not meant for the bot: it stays between people. */
export function toMessageEvent(deed: Deed, text: string, names: Names): MessageEvent | undefined {
  const addressed = toAddressed(deed, text, names);
  if (addressed === undefined) return undefined;
  return {
    kind: "message",
    ...toBase(deed),
    messageId: toMessageId(deed.message.id),
    text: withoutBot(text, names.botName),
    attachments: toAttachments(deed.message.files),
    addressed,
  };
}

/**
 * What an edit means to the bot: a changed message, a first message when the edit is what addresses it,
 * and nothing between people.
 */
export function toEditEvent(deed: Deed, before: string, after: string, names: Names): InboundEvent | undefined {
  if (toAddressed(deed, before, names) === undefined) return toMessageEvent(deed, after, names);
  return {
    kind: "edited",
    ...toBase(deed),
    messageId: toMessageId(deed.message.id),
    text: withoutBot(after, names.botName),
    attachments: toAttachments(deed.message.files),
  };
}

export function toDeletedEvent(deed: Deed): InboundEvent {
  return { kind: "deleted", ...toBase(deed), messageId: toMessageId(deed.message.id) };
}

/** A command given in a channel belongs to the channel, and its answer stands there too. */
export function toCommandEvent(deed: Deed, name: string, text: string, options: ImagineOptions = {}): CommandEvent {
  const base = toBase(deed);
  const { channelId, threadId, files } = deed.message;
  const said = {
    name,
    text,
    ...(files.length > 0 && { attachments: toAttachments(files) }),
    ...(Object.keys(options).length > 0 && { options: { ...options } }),
  };
  if (deed.channelKind === "chat" || threadId !== null) return { kind: "command", ...base, ...said };
  const { threadId: _, ...reply } = base.reply;
  return { kind: "command", ...base, conversationId: `local:${channelId}`, reply, ...said };
}

export function toActionEvent(deed: Deed, action: PressedAction, turnId: string): InboundEvent {
  return { kind: "action", ...toBase(deed), action, turnId };
}

/** A stop of what has no message yet. */
export function toStopEvent(place: Place, turnId: string, by: Pick<Deed, "nonce" | "author" | "at">): ActionEvent {
  const { channelId, threadId } = place;
  const thread = threadId === null ? "" : `:${threadId}`;
  return {
    kind: "action",
    key: `local:${by.nonce}`,
    conversationId: `local:${channelId}${thread}`,
    author: by.author,
    reply: {
      platform: PLATFORM,
      channelId,
      ...(threadId !== null && { threadId: String(threadId) }),
      extra: { askedBy: by.author.id },
    },
    at: by.at,
    action: "stop",
    turnId,
  };
}

function toBase(deed: Deed): Pick<InboundEvent, "key" | "conversationId" | "author" | "reply" | "at"> {
  const { nonce, author, at } = deed;
  return { key: `local:${nonce}`, conversationId: toConversationId(deed), author, reply: toReply(deed), at };
}

function toReply({ message, channelKind, author }: Deed): ReplyAddress {
  return {
    platform: PLATFORM,
    channelId: message.channelId,
    ...(channelKind === "channel" && { threadId: String(message.threadId ?? message.id) }),
    replyToId: toMessageId(message.id),
    // Lets the answer be erased together with the question.
    extra: { askedBy: author.id },
  };
}

function toAddressed(
  { message, channelKind }: Deed,
  text: string,
  names: Names,
): MessageEvent["addressed"] | undefined {
  if (channelKind === "chat") return "bot";
  const [first, ...rest] = findMentions(text, [names.botName, ...names.people]);
  if ([first, ...rest].some((mention) => mention?.name === names.botName)) return "bot";
  if (message.threadId === null) return undefined;
  return first !== undefined && text.slice(0, first.start).trim() === "" ? "other" : "open";
}

/** At either end the mention only addresses; in the middle of a sentence it is a word of it. */
function withoutBot(text: string, botName: string): string {
  let result = text;
  for (const { start, end } of findMentions(text, [botName]).toReversed()) {
    const [before, after] = [result.slice(0, start), result.slice(end)];
    const isAtEdge = before.trim() === "" || after.trim() === "";
    result = isAtEdge ? before + after.replace(/^\s*[,:、，：]\s*/, "") : before + botName + after;
  }
  return result.trim();
}
