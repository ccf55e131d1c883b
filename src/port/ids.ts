import { createHash } from "node:crypto";
/**
 * What buttons know a picture by: its job and its number in it, from 1 on. Number 0 is the job as a whole. Short, and
 * without ":", because platforms put it into ids of their own; the "." tells it from the id of a turn.
 */
export interface PictureId {
  jobId: string;
  part: number;
}

export function toPictureId(jobId: string, part: number): string {
  return `${jobId}.${part}`;
}

/** Undefined for the id of a turn. */
export function readPictureId(id: string): PictureId | undefined {
  const [, jobId, part] = /^([\w-]+)\.(\d)$/.exec(id) ?? [];
  return jobId === undefined ? undefined : { jobId, part: Number(part) };
}

/** The turn that a batch of events begins: the same for the same first event, so that a turn taken up again finds its record. */
export function toTurnId(eventKey: string): string {
  return createHash("sha256").update(eventKey).digest("base64url").slice(0, 16);
}

/** The nonce of the next post of a reply. It stays the same until that post is known to be carried out. */
export function toNonce({ id, posted, removed }: { id: string; posted: readonly string[]; removed: number }): string {
  return `${id}:${posted.length + removed}`;
}
