import type {
  ActionEvent,
  CommandEvent,
  EventBase,
  InboundEvent,
  MessageEvent,
  ReplyAddress,
} from "../../../src/port/events.ts";
import { editDistance } from "../../../src/text/edit-distance.ts";
import { PERSON, PLATFORM, readOwnZone, toAttachments, toMessageId } from "../ids.ts";
import type { ActionBody, CommandHelp, ImagineOptions, MessageRow, PersonaFields } from "../page/wire.ts";

export interface UserAction {
  /** The browser creates one nonce per action, and uses it again when it repeats the request. */
  nonce: string;
  message: Pick<MessageRow, "id" | "chatId" | "files">;
  at: number;
}

export function toMessageEvent(userAction: UserAction, text: string): MessageEvent {
  return { kind: "message", ...toBase(userAction), ...toContent(userAction, text), addressed: "bot" };
}

export function toEditEvent(userAction: UserAction, text: string): InboundEvent {
  return { kind: "edited", ...toBase(userAction), ...toContent(userAction, text) };
}

export function toDeletedEvent(userAction: UserAction): InboundEvent {
  return { kind: "deleted", ...toBase(userAction), messageId: toMessageId(userAction.message.id) };
}

export function toCommandEvent(
  userAction: UserAction,
  name: string,
  text: string,
  options: ImagineOptions | PersonaFields = {},
): CommandEvent {
  const { files } = userAction.message;
  return {
    kind: "command",
    ...toBase(userAction),
    name,
    text,
    ...(files.length > 0 && { attachments: toAttachments(files) }),
    ...(Object.keys(options).length > 0 && { options: { ...options } }),
  };
}

export function toActionEvent(
  userAction: UserAction,
  { action, turnId, reason, fields }: Omit<ActionBody, "nonce">,
): InboundEvent {
  const isReason = action === "bad" && reason !== undefined;
  return {
    kind: "action",
    ...toBase(userAction),
    action,
    turnId,
    ...(isReason && { reason }),
    ...(fields && { fields }),
  };
}

export function toStopEvent(chatId: string, turnId: string, { nonce, at }: Omit<UserAction, "message">): ActionEvent {
  return { kind: "action", ...toEvent(chatId, nonce, at), action: "stop", turnId };
}

function toContent({ message: { id, files } }: UserAction, text: string) {
  return { messageId: toMessageId(id), text, attachments: toAttachments(files) };
}

function toBase({ nonce, message, at }: UserAction): EventBase {
  const base = toEvent(message.chatId, nonce, at);
  return { ...base, reply: { ...base.reply, replyToId: toMessageId(message.id) } };
}

export function toEvent(chatId: string, nonce: string, at: number): EventBase {
  const reply: ReplyAddress = { platform: PLATFORM, channelId: chatId, isDirect: true };
  return {
    key: `local:${nonce}`,
    conversationId: `local:${chatId}`,
    author: { ...PERSON, timeZone: readOwnZone() },
    reply,
    at,
  };
}

/** A command's name ends at a space or at the end of the text: neither `/usr/bin` nor `1/2` is a command. */
const COMMAND = /^\/([a-z][a-z0-9_-]*)(?:\s+([\s\S]*))?$/i;

export type TypedCommand =
  | { kind: "text" }
  | { kind: "command"; name: string; text: string }
  /** The text looks like a command that the bot does not know. `message` is for the person who typed it. */
  | { kind: "unknown"; message: string };

/** Distinguishes a command from ordinary text. If `known` is empty, every name is a command. */
export function readCommand(text: string, known: readonly CommandHelp[]): TypedCommand {
  const [, typed, rest = ""] = COMMAND.exec(text) ?? [];
  if (typed === undefined) return { kind: "text" };
  const name = typed.toLowerCase();
  if (known.length === 0 || known.some((command) => command.name === name)) {
    return { kind: "command", name, text: rest.trim() };
  }
  const near = known.find((command) => editDistance(command.name, name) === 1);
  const hint = near === undefined ? "Type / to see all commands." : `Did you mean /${near.name}?`;
  return {
    kind: "unknown",
    message: `I don't know the command /${name}. ${hint} To send it as text, put a space in front.`,
  };
}
