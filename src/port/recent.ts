import type { EarlierMessage, RecentMessage } from "./events.ts";

/** Shared by the platforms when they read a channel for `readRecent`. */

/** Most threads of a channel that are read. */
export const MAX_THREADS = 20;

/** Sentences for `Recent.gaps`. */
export const TOO_MANY = "I couldn't read every message; the ones I missed are older.";
export const MANY_THREADS = `I read only the ${MAX_THREADS} most recently active threads.`;
export const LOST_THREAD = "I couldn't read one of the threads.";

/** `more` has what only the platform knows. The text of a message without words is the names of its files. */
export function toRecent(
  { messageId, author, text, attachments, at, by }: EarlierMessage,
  more: Pick<RecentMessage, "link" | "threadId" | "privateId" | "concernsAsker">,
): RecentMessage {
  const words = text || attachments.map(({ name }) => name).join(", ");
  return { messageId, author, text: words, at, ...(by !== undefined && { by }), ...more };
}
