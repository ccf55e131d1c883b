import type { Adapter } from "../../src/port/adapter.ts";
import { PERSON, PLATFORM } from "./ids.ts";
import type { Outbox } from "./store/outbox.ts";
import type { SinkDeps } from "./write/sink.ts";

/** Erases the messages, files and titles of one chat or of all. Chats stay: the answer to `/forget` goes there. */
export function createForgetting(deps: SinkDeps & { outbox: Outbox }): Required<Pick<Adapter, "forget">> {
  const { tables, chats, messages, outbox, eventStream } = deps;

  function forgetAll(): void {
    tables.inTransaction(() => {
      outbox.clear();
      for (const id of messages.all()) messages.erase(id);
      chats.clearTitle();
    });
  }

  function forgetChat(chatId: string, before: number): void {
    tables.inTransaction(() => {
      const spoken = messages.spokenIn(chatId, before);
      for (const id of spoken) messages.erase(id);
      if (spoken.length > 0) chats.clearTitle(chatId);
    });
  }

  return {
    async forget({ authorId, conversation }) {
      if (authorId !== undefined && authorId !== PERSON.id) return;
      if (conversation === undefined) forgetAll();
      else forgetChat(conversation.id.slice(`${PLATFORM}:`.length), conversation.before);
      eventStream.changed();
    },
  };
}
