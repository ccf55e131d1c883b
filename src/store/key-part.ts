import { createHash } from "node:crypto";

/** Longer ids are hashed, so that the length of keys is limited. */
const MAX_KEY_PART_CHARS = 200;

/**
 * Turns an id into a part of a key without ":". Different ids give different parts. Short ids stay readable; long or
 * invalid ones are hashed.
 */
export function toKeyPart(id: string): string {
  if (id.length <= MAX_KEY_PART_CHARS && id.isWellFormed()) {
    const part = encodeURIComponent(id);
    if (part.length <= MAX_KEY_PART_CHARS) return part;
  }
  return `#${createHash("sha256").update(id, "utf16le").digest("hex")}`;
}

/** Names a person in the index of their entries and in usage rows. */
export function toOwnerKey(platform: string, authorId: string): string {
  return `by:${toKeyPart(platform)}:${toKeyPart(authorId)}`;
}

/** The id behind a part of a key. Undefined if it was hashed. */
export function readKeyPart(part: string): string | undefined {
  return part.startsWith("#") ? undefined : decodeURIComponent(part);
}
