import type { AttachmentRef, Author } from "../../src/port/events.ts";
import type { MessageRow } from "./page/wire.ts";

export const PLATFORM = "local";

/** The author of everything that people write on the page. It has no accounts, so all people are the same person. */
export const PERSON: Author = { id: "you", name: "you" };

/** The time zone of this machine. In most cases it is the person's own machine. */
export function readOwnZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

export function toMessageId(id: number): string {
  return `local:${id}`;
}

export function toAttachments(files: MessageRow["files"]): AttachmentRef[] {
  return files.map(({ id, name, sizeBytes }) => ({ platform: PLATFORM, id, name, sizeBytes }));
}
