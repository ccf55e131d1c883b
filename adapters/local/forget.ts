import type { Adapter } from "../../src/port/adapter.ts";
import { PLATFORM } from "./ids.ts";
import type { MessageRow } from "./page/wire.ts";
import type { Outbox } from "./store/outbox.ts";
import type { SinkDeps } from "./write/sink.ts";

export type Forgetting = Required<Pick<Adapter, "forget" | "forgetConversation">>;

/**
 * Makes the functions that erase what is kept here. `forget`: what one person wrote anywhere, the bot's answers in
 * their direct chats, the files of both, and what they thought of answers; the person can still be chosen at the page.
 * `forgetConversation`: what was said at a place, and its files. The chats themselves stay, without their titles,
 * because the answer that says so goes there.
 */
export function createForgetting(deps: SinkDeps & { outbox: Outbox }): Forgetting {
  const { tables, directory, messages, outbox, feed } = deps;

  return {
    async forget(authorId) {
      tables.inTransaction(() => {
        const chats = messages.chatsOf(authorId);
        outbox.forget(authorId);
        messages.unjudge(authorId);
        for (const id of messages.ownedBy(authorId)) messages.erase(id);
        for (const id of chats) directory.clearTitle(id);
      });
      feed.changed();
    },
    async forgetConversation(conversationId, authorId, at) {
      const place = toPlace(conversationId);
      tables.inTransaction(() => {
        const spoken = messages.spokenAt(place, authorId ?? null, at);
        for (const id of spoken) messages.erase(id);
        const isChat = directory.channel(place.channelId)?.kind === "chat";
        if (isChat && spoken.length > 0) directory.clearTitle(place.channelId);
      });
      feed.changed();
    },
  };
}

/** Reads the place from a conversation's id; ids of channels have no colon. */
function toPlace(conversationId: string): Pick<MessageRow, "channelId" | "threadId"> {
  const [channelId = "", threadId] = conversationId.slice(`${PLATFORM}:`.length).split(":");
  return { channelId, threadId: threadId === undefined ? null : Number(threadId) };
}
