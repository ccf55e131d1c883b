import type { Outbox } from "./outbox.ts";
import type { SinkDeps } from "./sink.ts";

/**
 * Makes the function that erases what one person wrote anywhere, the bot's answers in their direct chats, and the
 * files of both, and what they thought of answers. The chats themselves stay, without their titles, because the answer that says so goes there; the
 * person can still be chosen at the page.
 */
export function createForget(deps: SinkDeps & { outbox: Outbox }): (authorId: string) => Promise<void> {
  const { tables, directory, messages, outbox, feed } = deps;

  return async (authorId) => {
    tables.inTransaction(() => {
      const chats = messages.chatsOf(authorId);
      outbox.forget(authorId);
      messages.unjudge(authorId);
      for (const id of messages.ownedBy(authorId)) messages.erase(id);
      for (const id of chats) directory.clearTitle(id);
    });
    feed.changed();
  };
}
