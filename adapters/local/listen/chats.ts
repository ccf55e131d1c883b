import type { CommandEvent } from "../../../src/port/events.ts";
import { RequestError } from "../errors.ts";
import { PLATFORM } from "../ids.ts";
import type { LocalAdapterOptions } from "../options.ts";
import type { ChannelRow, DeleteBody } from "../page/wire.ts";
import { findAuthor } from "../store/directory.ts";
import type { SinkDeps } from "../write/sink.ts";
import { type DeliveryDeps, offer } from "./delivery.ts";

export interface ChatsDeps
  extends DeliveryDeps,
    Pick<SinkDeps, "directory" | "messages" | "now">,
    Pick<LocalAdapterOptions, "commands"> {
  changed: () => void;
}

/** Changes a direct chat as a whole. */
export interface Chats {
  rename(id: string, title: string): void;
  /** Erases it with everything in it, here and in the bot's memory. Resolves when the queue knows. */
  erase(id: string, body: DeleteBody): Promise<void>;
}

export function createChats(deps: ChatsDeps): Chats {
  const { tables, directory, messages, commands, now, changed } = deps;

  function find(id: string): ChannelRow {
    const channel = directory.channel(id);
    if (channel === undefined) throw new RequestError(404, "This conversation no longer exists.");
    if (channel.kind !== "chat") throw new RequestError(403, "A channel belongs to everybody and stays as it is.");
    return channel;
  }

  return {
    rename(id, title) {
      const chat = find(id);
      tables.inTransaction(() => directory.rename(chat.id, title));
      changed();
    },
    async erase(id, { nonce, authorId }) {
      // The second time it is gone already.
      if (directory.channel(id) === undefined) return;
      const { id: channelId } = find(id);
      const author = findAuthor(directory, authorId);
      const event: CommandEvent = {
        kind: "command",
        key: `local:${nonce}`,
        conversationId: `local:${channelId}`,
        author,
        reply: { platform: PLATFORM, channelId, extra: { askedBy: author.id } },
        at: now(),
        name: "forget",
        text: "conversation",
      };
      if (commands.some(({ name }) => name === "forget")) return offer(deps, event, { kind: "eraseChat", channelId });
      tables.inTransaction(() => {
        for (const messageId of messages.inChannel(channelId)) messages.erase(messageId);
        directory.removeChannel(channelId);
      });
      changed();
    },
  };
}
