import { createHash } from "node:crypto";

/** Longer ids are hashed, so that a key has a bound whatever a platform calls its things. */
const MAX_KEY_PART_CHARS = 200;

/** A collision-free part of a key without ":". Short ids stay readable; long or ill-formed ones are hashed. */
export function toKeyPart(id: string): string {
  if (id.length <= MAX_KEY_PART_CHARS && id.isWellFormed()) {
    const part = encodeURIComponent(id);
    if (part.length <= MAX_KEY_PART_CHARS) return part;
  }
  return `#${createHash("sha256").update(id, "utf16le").digest("hex")}`;
}

/** Begins the keys of what a person owns. */
export function toOwnerKey(platform: string, authorId: string): string {
  return `by:${toKeyPart(platform)}:${toKeyPart(authorId)}`;
}

/** The id that a part of a key was made of; undefined for one that was hashed. */
export function readKeyPart(part: string): string | undefined {
  return part.startsWith("#") ? undefined : decodeURIComponent(part);
}
