import { createHash } from "node:crypto";

/** Longer ids are hashed, so that keys stay short. */
const MAX_KEY_PART_CHARS = 200;

/** Turns an id into a part of a key without ":". Different ids give different parts; long ids become hashes. */
export function toKeyPart(id: string): string {
  if (id.length <= MAX_KEY_PART_CHARS && id.isWellFormed()) {
    const part = encodeURIComponent(id);
    if (part.length <= MAX_KEY_PART_CHARS) return part;
  }
  return `#${createHash("sha256").update(id, "utf16le").digest("hex")}`;
}

export function toOwnerKey(platform: string, authorId: string): string {
  return `by:${toKeyPart(platform)}:${toKeyPart(authorId)}`;
}

/** Returns the id of a key's part; undefined if the part is a hash. */
export function readKeyPart(part: string): string | undefined {
  return part.startsWith("#") ? undefined : decodeURIComponent(part);
}
