import { setImmediate } from "node:timers/promises";
import type { ChatMessage } from "../gateway/chunks.ts";
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

/** Reads the newest entries, or the newest before `beforeId`. */
export type ReadBefore = (conversationId: string, beforeId: string | undefined, maxEntries: number) => Promise<Page>;

const PAGE_ENTRIES = 100;
const MAX_PAGES = 20;

/** Reads a conversation page by page, newest first, for as many pages as a tool may take. */
export async function* readPages(
  readBefore: ReadBefore,
  conversationId: string,
  beforeId: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<Page> {
  let before = beforeId;
  for (let page = 0; page < MAX_PAGES; page++) {
    // Lets others go on: an embedded store answers without ever leaving this thread.
    await setImmediate(undefined, { signal });
    const { entries, hasOlder } = await readBefore(conversationId, before, PAGE_ENTRIES);
    before = entries[0]?.id;
    const goesOn = hasOlder && before !== undefined;
    yield { entries, hasOlder: goesOn };
    if (!goesOn) return;
  }
}

/** The text on one line. */
export function toLine(text: string): string {
  return text.replace(/[\p{Cc}\s]+/gu, " ").trim();
}
