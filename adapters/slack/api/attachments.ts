import type { AttachmentRef } from "../../../src/port/events.ts";
import { PLATFORM } from "../ids.ts";
import { type Body, readText } from "./wire.ts";
import type { Workspace } from "./workspaces.ts";

/** Modes of files that Slack lists without keeping their bytes. */
const EMPTY_MODES = new Set(["tombstone", "hidden_by_limit"]);

/** The file behind an attachment, and the workspace whose token opens it. */
export interface AttachmentPlace {
  teamId: string;
  fileId: string;
}

/** The files of a message. Another organisation's come without name and size, which `files.info` tells. */
export function toAttachments({ teamId }: Pick<Workspace, "teamId">, files: readonly Body[]): AttachmentRef[] {
  return files.flatMap((file) => {
    const fileId = readText(file["id"]);
    if (fileId === undefined || EMPTY_MODES.has(readText(file["mode"]) ?? "")) return [];
    const name = readText(file["name"]) ?? readText(file["title"]) ?? "file";
    const size = file["size"];
    const sizeBytes = typeof size === "number" ? size : 0;
    return [{ platform: PLATFORM, id: `${teamId}:${fileId}`, name, sizeBytes }];
  });
}

/** Undefined for the id of another platform's attachment. */
export function readAttachmentId(id: string): AttachmentPlace | undefined {
  const [, teamId, fileId] = /^(\w+):(\w+)$/.exec(id) ?? [];
  return teamId === undefined || fileId === undefined ? undefined : { teamId, fileId };
}
