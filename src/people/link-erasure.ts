import type { History } from "../history/history.ts";
import type { References } from "../media/reference.ts";
import type { AttachmentRef } from "../port/events.ts";

/** Wraps a history so that links to a file are erased before its message is deleted or loses the file in an edit. */
export function withLinkErasure(history: History, links: Pick<References, "erase">): History {
  async function attachmentsOf(messageId: string): Promise<readonly AttachmentRef[]> {
    const place = await history.find(messageId);
    if (place === undefined) return [];
    const { entries } = await history.read(place.conversationId, { maxEntries: 1, upToId: messageId });
    return entries[0]?.attachments ?? [];
  }

  return {
    ...history,
    async remove(messageId) {
      await links.erase(await attachmentsOf(messageId));
      return history.remove(messageId);
    },
    async edit(messageId, text, attachments) {
      const stays = new Set(attachments.map(({ id }) => id));
      await links.erase((await attachmentsOf(messageId)).filter(({ id }) => !stays.has(id)));
      return history.edit(messageId, text, attachments);
    },
  };
}
