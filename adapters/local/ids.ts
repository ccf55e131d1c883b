import type { AttachmentRef } from "../../src/port/events.ts";
import type { MessageRow } from "./page/wire.ts";
export const PLATFORM = "local";

export function toMessageId(id: number): string {
  return `local:${id}`;
}

export function toAttachments(files: MessageRow["files"]): AttachmentRef[] {
  return files.map(({ id, name, sizeBytes }) => ({ platform: PLATFORM, id, name, sizeBytes }));
}
