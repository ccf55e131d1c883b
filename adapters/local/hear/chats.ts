import type { CommandEvent } from "../../../src/port/events.ts";
import { RequestError } from "../errors.ts";
import type { LocalAdapterOptions } from "../options.ts";
import type { ActBody, ChatRow } from "../page/wire.ts";
import type { SinkDeps } from "../write/sink.ts";
import { type DeliveryDeps, offer } from "./delivery.ts";
import { toEvent } from "./inbound.ts";

export interface ChatDeps
  extends DeliveryDeps,
    Pick<SinkDeps, "chats" | "messages" | "now">,
    Pick<LocalAdapterOptions, "commands"> {
  changed: () => void;
}

export interface ChatActions {
  rename(id: string, title: string): void;
  /** Erases the chat with everything in it, also in the bot's memory. Resolves when the queue has the event. */
  erase(id: string, body: ActBody): Promise<void>;
}

export function createChatActions(deps: ChatDeps): ChatActions {
  const { tables, chats, messages, commands, now, changed } = deps;

  function find(id: string): ChatRow {
    const chat = chats.find(id);
    if (chat === undefined) throw new RequestError(404, "This chat no longer exists.");
    return chat;
  }

  return {
    rename(id, title) {
      const chat = find(id);
      tables.inTransaction(() => chats.rename(chat.id, title));
      changed();
    },
    async erase(id, { nonce }) {
      // The chat is already gone if this request is repeated.
      if (chats.find(id) === undefined) return;
      const base = toEvent(id, nonce, now());
      const event: CommandEvent = { kind: "command", ...base, name: "forget", text: "conversation" };
      if (commands.some(({ name }) => name === "forget")) return offer(deps, event, { kind: "eraseChat", chatId: id });
      tables.inTransaction(() => {
        for (const messageId of messages.inChat(id)) messages.erase(messageId);
        chats.remove(id);
      });
      changed();
    },
  };
}
