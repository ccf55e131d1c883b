import type { MessageInput } from "../../../adapters/local/store/messages.ts";

export function toMessageInput(nonce: string, more: Partial<MessageInput> = {}): MessageInput {
  return {
    nonce,
    chatId: "chat-1",
    isBot: true,
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
