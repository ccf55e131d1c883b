import { withoutAttached } from "../gateway/chunks.ts";
import type { HistoryEntry } from "../history/record.ts";
import type { EarlierMessage, MessageEvent, ReplyAddress } from "../port/events.ts";
import { truncate } from "../text/truncate.ts";
import type { TurnRecord } from "./record.ts";

/** Most characters kept of one message that was not said to the bot. */
const MAX_EARLIER_CHARS = 4_000;

/** A person's message as the history keeps it. */
export function toEntry({
  messageId,
  at,
  text,
  author,
  reply,
  attachments,
  quotes,
}: Omit<EarlierMessage, "by" | "isRoot"> & Pick<MessageEvent, "reply" | "quotes">): HistoryEntry {
  return {
    id: messageId,
    at,
    author: { platform: reply.platform, id: author.id, name: author.name },
    messages: [{ role: "user", content: text }],
    attachments,
    ...(quotes !== undefined && { quotes }),
  };
}

/** A turn's answer as the history keeps it; `number` counts the ends of the turn. */
export function toAnswerEntry(
  { id, edition, author, reply }: TurnRecord,
  {
    messages,
    isRefused,
    number,
    former,
    ...answer
  }: Pick<HistoryEntry, "messages" | "partial"> & {
    isRefused: boolean;
    number: number;
    former: NonNullable<HistoryEntry["former"]>;
  },
): HistoryEntry {
  return {
    id,
    at: Date.now(),
    askedBy: { platform: reply.platform, id: author.id },
    messages: messages.map(withoutAttached),
    ...answer,
    ...(isRefused && { isRefused }),
    ...(edition > 1 && { edition }),
    ...(number > 1 && { end: number }),
    ...(former.length > 0 && { former }),
  };
}

/** Each message once, without those that say nothing. */
export function toEarlierEntries(said: readonly EarlierMessage[], reply: ReplyAddress): HistoryEntry[] {
  const entries = new Map<string, HistoryEntry>();
  for (const message of said) {
    const { messageId, text, attachments, by, isRoot } = message;
    if (text.trim() === "" && attachments.length === 0) continue;
    const marks = { isEarlier: true, ...(by !== undefined && { by }), ...(isRoot && { isRoot }) };
    entries.set(messageId, { ...toEntry({ ...message, text: toBounded(text), reply }), ...marks });
  }
  return [...entries.values()];
}

function toBounded(text: string): string {
  if (text.length <= MAX_EARLIER_CHARS) return text;
  const kept = truncate(text, MAX_EARLIER_CHARS, "");
  return `${kept}\n[… ${text.length - kept.length} characters left out …]`;
}
