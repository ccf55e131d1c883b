import type {
  ActionEvent,
  Author,
  CommandEvent,
  EventBase,
  InboundEvent,
  MessageEvent,
  ReplyAddress,
} from "../../../src/port/events.ts";
import { PLATFORM, toAttachments, toMessageId } from "../ids.ts";
import { findMentions } from "../page/mentions.ts";
import type {
  ActionBody,
  ChannelKind,
  CommandHelp,
  ImagineOptions,
  MessageRow,
  PersonaFields,
  Place,
} from "../page/wire.ts";

/** Somebody does something to a message, at a place. */
export interface UserAction {
  /** Made by the browser for this action, the same when it is sent again. */
  nonce: string;
  message: Pick<MessageRow, "id" | "channelId" | "threadId" | "files">;
  channelKind: ChannelKind;
  author: Author;
  at: number;
}

/** Everybody who can be mentioned. */
export interface Names {
  botName: string;
  /** A message in this channel that addresses nobody is said to the bot. */
  isListening?: boolean;
  people: readonly string[];
}

/** In a direct chat all messages are one conversation; in a channel each thread is, named by its first message. */
function toConversationId({ message, channelKind }: Pick<UserAction, "message" | "channelKind">): string {
  const { channelId, threadId, id } = message;
  return channelKind === "chat" ? `local:${channelId}` : `local:${channelId}:${threadId ?? id}`;
}

/** Undefined for a message in a channel that is not meant for the bot: it stays between people. */
export function toMessageEvent(userAction: UserAction, text: string, names: Names): MessageEvent | undefined {
  const addressed = toAddressed(userAction, text, names);
  if (addressed === undefined) return undefined;
  const isListenedTo = toAddressed(userAction, text, { ...names, isListening: false }) === undefined;
  return {
    kind: "message",
    ...toBase(userAction),
    messageId: toMessageId(userAction.message.id),
    text: withoutBot(text, names.botName),
    attachments: toAttachments(userAction.message.files),
    addressed,
    ...(isListenedTo && { isListenedTo: true }),
  };
}

/**
 * The event that an edit is to the bot: a changed message, a first message when the edit is what addresses it,
 * and nothing between people.
 */
export function toEditEvent(
  userAction: UserAction,
  before: string,
  after: string,
  names: Names,
): InboundEvent | undefined {
  if (toAddressed(userAction, before, names) === undefined) return toMessageEvent(userAction, after, names);
  return {
    kind: "edited",
    ...toBase(userAction),
    messageId: toMessageId(userAction.message.id),
    text: withoutBot(after, names.botName),
    attachments: toAttachments(userAction.message.files),
  };
}

export function toDeletedEvent(userAction: UserAction): InboundEvent {
  return { kind: "deleted", ...toBase(userAction), messageId: toMessageId(userAction.message.id) };
}

/** A command given in a channel belongs to the channel, and its answer stands there too. */
export function toCommandEvent(
  userAction: UserAction,
  name: string,
  text: string,
  options: ImagineOptions | PersonaFields = {},
): CommandEvent {
  const base = toBase(userAction);
  const { channelId, threadId, files } = userAction.message;
  const said = {
    name,
    text,
    ...(files.length > 0 && { attachments: toAttachments(files) }),
    ...(Object.keys(options).length > 0 && { options: { ...options } }),
  };
  if (userAction.channelKind === "chat" || threadId !== null) return { kind: "command", ...base, ...said };
  const { threadId: _, ...reply } = base.reply;
  return { kind: "command", ...base, conversationId: `local:${channelId}`, reply, ...said };
}

export function toActionEvent(
  userAction: UserAction,
  { action, turnId, reason }: Pick<ActionBody, "action" | "turnId" | "reason">,
): InboundEvent {
  const isReason = action === "bad" && reason !== undefined;
  return { kind: "action", ...toBase(userAction), action, turnId, ...(isReason && { reason }) };
}

/** A stop of a turn that has no message yet. */
export function toStopEvent(
  place: Place,
  turnId: string,
  by: Pick<UserAction, "nonce" | "author" | "at">,
): ActionEvent {
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

function toBase(userAction: UserAction): EventBase {
  const { nonce, author, at } = userAction;
  return {
    key: `local:${nonce}`,
    conversationId: toConversationId(userAction),
    author,
    reply: toReply(userAction),
    at,
  };
}

function toReply({ message, channelKind, author }: UserAction): ReplyAddress {
  return {
    platform: PLATFORM,
    channelId: message.channelId,
    ...(channelKind === "chat" && { isDirect: true }),
    ...(channelKind === "channel" && { threadId: String(message.threadId ?? message.id) }),
    replyToId: toMessageId(message.id),
    // Lets the answer be erased together with the question.
    extra: { askedBy: author.id },
  };
}

function toAddressed(
  { message, channelKind }: UserAction,
  text: string,
  names: Names,
): MessageEvent["addressed"] | undefined {
  if (channelKind === "chat") return "bot";
  const [first, ...rest] = findMentions(text, [names.botName, ...names.people]);
  if ([first, ...rest].some((mention) => mention?.name === names.botName)) return "bot";
  if (message.threadId === null) return names.isListening === true && first === undefined ? "bot" : undefined;
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

/** A path or a fraction at the start of a message is no command: the name ends at a space or at the end. */
const COMMAND = /^\/([a-z][a-z0-9_-]*)(?:\s+([\s\S]*))?$/i;

export type TypedCommand =
  | { kind: "text" }
  | { kind: "command"; name: string; text: string }
  /** Looks like a command that nobody knows; `message` is for the person who typed it. */
  | { kind: "unknown"; message: string };

/** Tells a command from ordinary text. Without any known names every command is let through. */
export function readCommand(text: string, known: readonly CommandHelp[]): TypedCommand {
  const [, typed, rest = ""] = COMMAND.exec(text) ?? [];
  if (typed === undefined) return { kind: "text" };
  const name = typed.toLowerCase();
  if (known.length === 0 || known.some((command) => command.name === name)) {
    return { kind: "command", name, text: rest.trim() };
  }
  const near = known.find((command) => isNear(command.name, name));
  const hint = near === undefined ? "Type / to see the commands there are." : `Did you mean /${near.name}?`;
  return {
    kind: "unknown",
    message: `There is no command /${name}. ${hint} With a space in front it is sent as text.`,
  };
}

/** One letter added, left out, or changed, or two swapped. */
function isNear(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1) return false;
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  const [restA, restB] = [a.slice(start), b.slice(start)];
  const isSwap = restA[0] === restB[1] && restA[1] === restB[0] && restA.slice(2) === restB.slice(2);
  return isSwap || restA.slice(1) === restB.slice(1) || restA === restB.slice(1) || restA.slice(1) === restB;
}
