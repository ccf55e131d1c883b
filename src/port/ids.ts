import { createHash } from "node:crypto";
import type { InboundEvent } from "./events.ts";

/**
 * Names a picture on its buttons: its job and its number in it, from 1 on. Number 0 is the job as a whole. Short, and
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

/** Names the calls of a turn that a button is about. `digest` is in base64url. */
export function toCallsId(turnId: string, digest: string): string {
  return `${turnId}~${digest}`;
}

/** The turn that a button belongs to, and the digest of calls if it is about some. */
export function readCallsId(id: string): { turnId: string; digest: string | undefined } {
  const [, turnId = id, digest] = /^(.+)~([\w-]+)$/.exec(id) ?? [];
  return { turnId, digest };
}

/**
 * One of the answers that a turn was given: its first one is number 1, and every further asking for it makes the next.
 * Written on buttons as the id of the turn is, and told from that and from a picture's by its end.
 */
export interface EditionId {
  turnId: string;
  /** Undefined where the id names a turn alone. */
  edition: number | undefined;
}

export function toEditionId(turnId: string, edition: number): string {
  return `${turnId}.v${edition}`;
}

export function readEditionId(id: string): EditionId {
  const [, turnId, edition] = /^([\w-]+)\.v(\d{1,6})$/.exec(id) ?? [];
  return { turnId: turnId ?? id, edition: edition === undefined ? undefined : Number(edition) };
}

/** The turn that a button belongs to, whether its id names that turn, one of its answers or its calls. */
export function readTurnId(id: string): string {
  return readEditionId(readCallsId(id).turnId).turnId;
}

/** The key of the event that tells that a message was deleted, by the key of the message itself. */
export function toDeletionKey(messageKey: string): string {
  return `${messageKey}:deleted`;
}

/** The turn of a batch: the same for the same first event, so that a turn taken up again finds its record. */
export function toTurnId(eventKey: string): string {
  return createHash("sha256").update(eventKey).digest("base64url").slice(0, 16);
}

/** The nonce of the next post of a reply. It stays the same until that post is known to be carried out. */
export function toNonce({ id, posted, removed }: { id: string; posted: readonly string[]; removed: number }): string {
  return `${id}:${posted.length + removed}`;
}

/** Occurs in no id that a platform makes. */
const PRIVATE_MARK = "~";

/**
 * The conversation of what an event begins: that of its place, and one of its own where only one person sees the
 * answer. The next person who asks there is shown nothing of it, whatever place the adapter named.
 */
export function toConversationOf({
  conversationId,
  reply,
  key,
}: Pick<InboundEvent, "conversationId" | "reply" | "key">): string {
  if (reply.visibleTo === undefined || isPrivateConversation(conversationId)) return conversationId;
  return `${conversationId}${PRIVATE_MARK}${toTurnId(key)}`;
}

export function isPrivateConversation(conversationId: string): boolean {
  return conversationId.includes(PRIVATE_MARK);
}
