import type { Adapter } from "../../src/port/adapter.ts";
import { PLATFORM } from "./ids.ts";
import type { Place } from "./page/wire.ts";
import type { Outbox } from "./store/outbox.ts";
import type { SinkDeps } from "./write/sink.ts";

export type Forgetting = Required<Pick<Adapter, "forget" | "forgetConversation">>;

/**
 * Makes the functions that erase data kept here. `forget` erases one person's messages everywhere, the bot's answers in
 * their direct chats, the files of both, and their judgements; the person can still be chosen at the page.
 * `forgetConversation` erases the messages of a place and their files. The chats stay, without their titles, because the
 * answer to `/forget` goes there.
 */
export function createForgetting(deps: SinkDeps & { outbox: Outbox }): Forgetting {
  const { tables, directory, messages, outbox, eventStream } = deps;

  return {
    async forget(authorId) {
      tables.inTransaction(() => {
        const chats = messages.chatsOf(authorId);
        outbox.forget(authorId);
        messages.unjudge(authorId);
        for (const id of messages.ownedBy(authorId)) messages.erase(id);
        for (const id of chats) directory.clearTitle(id);
      });
      eventStream.changed();
    },
    async forgetConversation(conversationId, authorId, at) {
      const place = toPlace(conversationId);
      tables.inTransaction(() => {
        const spoken = messages.spokenAt(place, authorId ?? null, at);
        for (const id of spoken) messages.erase(id);
        const isChat = directory.channel(place.channelId)?.kind === "chat";
        if (isChat && spoken.length > 0) directory.clearTitle(place.channelId);
      });
      eventStream.changed();
    },
  };
}

/** Reads the place from a conversation's id; ids of channels have no colon. */
function toPlace(conversationId: string): Place {
  const [channelId = "", threadId] = conversationId.slice(`${PLATFORM}:`.length).split(":");
  return { channelId, threadId: threadId === undefined ? null : Number(threadId) };
}
