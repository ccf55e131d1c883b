import type { EditedEvent, MessageEvent } from "../../../src/port/events.ts";

const MAX_KNOWN = 5_000;

/** What was delivered of a message, so that what happens to it later goes the same way. */
export type KnownMessage = Pick<MessageEvent, "conversationId" | "author" | "reply"> & { body: string };

/** The messages of late, by their ids on Discord. */
export interface KnownMessages {
  get(id: string): KnownMessage | undefined;
  set(id: string, event: MessageEvent | EditedEvent): void;
  forget(id: string): void;
  /** A message of the bot. */
  setOwn(id: string): void;
  isOwn(id: string): boolean;
}

export function createKnownMessages(): KnownMessages {
  const known = new Map<string, KnownMessage>();
  const own = new Map<string, true>();
  return {
    get: (id) => known.get(id),
    set(id, { conversationId, author, reply, ...event }) {
      remember(known, id, { conversationId, author, reply, body: toBodyKey(event) });
    },
    forget: (id) => void known.delete(id),
    setOwn: (id) => remember(own, id, true),
    isOwn: (id) => own.has(id),
  };
}

/** The same for the same words and files. */
export function toBodyKey({ text, attachments }: Pick<EditedEvent, "text" | "attachments">): string {
  return JSON.stringify([text, attachments.map(({ id }) => id)]);
}

function remember<T>(map: Map<string, T>, id: string, value: T): void {
  map.delete(id);
  map.set(id, value);
  const [oldest] = map.keys();
  if (map.size > MAX_KNOWN && oldest !== undefined) map.delete(oldest);
}
