import type { AttachmentRef, Author } from "../../src/port/events.ts";
import type { MessageRow } from "./page/wire.ts";

export const PLATFORM = "local";

/** For the bot, everyone who opens the page is the same person, because the page has no accounts. */
export const PERSON: Author = { id: "you", name: "you" };

/** The page runs on the person's own machine, in most cases. */
export function readOwnZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

export function toMessageId(id: number): string {
  return `local:${id}`;
}

export function toAttachments(files: MessageRow["files"]): AttachmentRef[] {
  return files.map(({ id, name, sizeBytes }) => ({ platform: PLATFORM, id, name, sizeBytes }));
}
