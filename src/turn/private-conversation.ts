import type { InboundEvent } from "../port/events.ts";
import { toTurnId } from "../port/ids.ts";

/** Occurs in no id that a platform makes. */
const MARK = "~";

/**
 * The conversation of what an event begins: that of its place, and one of its own where only one person sees the
 * answer. Whoever asks there next is shown nothing of it, whatever place the adapter named.
 */
export function toConversationOf({
  conversationId,
  reply,
  key,
}: Pick<InboundEvent, "conversationId" | "reply" | "key">): string {
  if (reply.visibleTo === undefined || isPrivateConversation(conversationId)) return conversationId;
  return `${conversationId}${MARK}${toTurnId(key)}`;
}

export function isPrivateConversation(conversationId: string): boolean {
  return conversationId.includes(MARK);
}
