import type { MessageInput } from "../../../adapters/local/store/messages.ts";

/** A message of the bot in a channel that everybody sees, with nothing to it but its words. */
export function toMessageInput(nonce: string, more: Partial<MessageInput> = {}): MessageInput {
  return {
    nonce,
    channelId: "general",
    threadId: null,
    authorId: null,
    askedBy: null,
    replyTo: null,
    visibleTo: null,
    text: nonce,
    isCommand: false,
    options: {},
    buttons: [],
    steps: [],
    isStreaming: false,
    isHidden: false,
    at: 1,
    ...more,
  };
}
