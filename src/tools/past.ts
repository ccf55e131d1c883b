import { setImmediate } from "node:timers/promises";
import type { ChatMessage } from "../gateway/chunks.ts";
import type { History } from "../history/history.ts";
import type { AttachmentRef } from "../port/events.ts";

export interface PastEntry {
  id: string;
  /** Unix milliseconds. */
  at: number;
  author?: { name: string };
  messages: ChatMessage[];
  attachments?: AttachmentRef[];
}

interface Page {
  /** Oldest first. */
  entries: PastEntry[];
  hasOlder: boolean;
}

/** Reads the newest entries, or the newest entries before `beforeId`. */
export type ReadBefore = (conversationId: string, beforeId: string | undefined, maxEntries: number) => Promise<Page>;

export function toReadBefore(history: History): ReadBefore {
  return (conversationId, beforeId, maxEntries) => history.read(conversationId, { maxEntries, beforeId });
}

const PAGE_ENTRIES = 100;
const MAX_PAGES = 20;

/** Reads a conversation in pages, newest first. One tool call reads a limited number of pages. */
export async function* readPages(
  readBefore: ReadBefore,
  conversationId: string,
  beforeId: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<Page> {
  let before = beforeId;
  for (let page = 0; page < MAX_PAGES; page++) {
    // Lets other work run, because an embedded store never leaves this thread.
    await setImmediate(undefined, { signal });
    const { entries, hasOlder } = await readBefore(conversationId, before, PAGE_ENTRIES);
    before = entries[0]?.id;
    const goesOn = hasOlder && before !== undefined;
    yield { entries, hasOlder: goesOn };
    if (!goesOn) return;
  }
}

export function toLine(text: string): string {
  return text.replace(/[\p{Cc}\s]+/gu, " ").trim();
}
