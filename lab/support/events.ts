import type {
  ActionEvent,
  Author,
  CommandEvent,
  DeletedEvent,
  EditedEvent,
  MessageEvent,
  ReplyAddress,
} from "../../src/port/events.ts";
import { toDeletionKey } from "../../src/port/ids.ts";

export const ada: Author = { id: "ada", name: "Ada" };
export const ben: Author = { id: "ben", name: "Ben" };

const address: ReplyAddress = { platform: "test", channelId: "general" };
let made = 0;

function base(author: Author, conversationId: string) {
  made += 1;
  return { key: `test:event:${made}`, conversationId, author, reply: address, at: 1_700_000_000_000 + made };
}

interface Options {
  author?: Author;
  conversationId?: string;
}

export function message(
  text: string,
  { author = ada, conversationId = "test:a", ...rest }: Options & Partial<MessageEvent> = {},
): MessageEvent {
  const common = base(author, conversationId);
  return { ...common, kind: "message", messageId: `test:m${made}`, text, attachments: [], addressed: "bot", ...rest };
}

export function edited(original: MessageEvent, text: string): EditedEvent {
  const { messageId, attachments, author, conversationId } = original;
  return { ...base(author, conversationId), kind: "edited", messageId, text, attachments };
}

export function deleted({ key, messageId, author, conversationId }: MessageEvent): DeletedEvent {
  return { ...base(author, conversationId), key: toDeletionKey(key), kind: "deleted", messageId };
}

export function action(
  name: ActionEvent["action"],
  turnId: string,
  { author = ada, conversationId = "test:a" }: Options = {},
): ActionEvent {
  return { ...base(author, conversationId), kind: "action", action: name, turnId };
}

export function command(
  name: string,
  text = "",
  { author = ada, conversationId = "test:a" }: Options = {},
): CommandEvent {
  return { ...base(author, conversationId), kind: "command", name, text };
}
