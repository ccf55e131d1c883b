import { createHash } from "node:crypto";
import type { InboundEvent } from "./events.ts";

/**
 * Names an image on its buttons by its turn and by its number in the turn, starting at 1. Number 0 stands for the whole
 * turn. The id is short and has no ":", because platforms put it into their own ids. A "." distinguishes it from a
 * turn's id.
 */
export interface PictureId {
  turnId: string;
  part: number;
}

export function toPictureId(turnId: string, part: number): string {
  return `${turnId}.${part}`;
}

/** Undefined if the id belongs to a turn. */
export function readPictureId(id: string): PictureId | undefined {
  const [, turnId, part] = /^([\w-]+)\.(\d)$/.exec(id) ?? [];
  return turnId === undefined ? undefined : { turnId, part: Number(part) };
}

/** Makes the id with which a button names some of a turn's tool calls. `digest` is in base64url. */
export function toCallsId(turnId: string, digest: string): string {
  return `${turnId}~${digest}`;
}

export function readCallsId(id: string): { turnId: string; digest: string | undefined } {
  const [, turnId = id, digest] = /^(.+)~([\w-]+)$/.exec(id) ?? [];
  return { turnId, digest };
}

/**
 * Names one of a turn's answers. The first answer is number 1, and each new answer to the question adds one. Buttons
 * can carry this id instead of a turn's id. Its suffix distinguishes it from the id of a turn or an image.
 */
export interface EditionId {
  turnId: string;
  /** Undefined if the id names only a turn. */
  edition: number | undefined;
}

export function toEditionId(turnId: string, edition: number): string {
  return `${turnId}.v${edition}`;
}

export function readEditionId(id: string): EditionId {
  const [, turnId, edition] = /^([\w-]+)\.v(\d{1,6})$/.exec(id) ?? [];
  return { turnId: turnId ?? id, edition: edition === undefined ? undefined : Number(edition) };
}

/** Reads the turn from a button's id, which can name that turn, one of its answers or its tool calls. */
export function readTurnId(id: string): string {
  return readEditionId(readCallsId(id).turnId).turnId;
}

export function toDeletionKey(messageKey: string): string {
  return `${messageKey}:deleted`;
}

/** Derives a batch's turn id from the key of its first event, so that a resumed turn finds its stored record. */
export function toTurnId(eventKey: string): string {
  return createHash("sha256").update(eventKey).digest("base64url").slice(0, 16);
}

/** Makes the nonce of a reply's next post. The nonce stays the same until the platform confirms that post. */
export function toNonce({ id, posted, removed }: { id: string; posted: readonly string[]; removed: number }): string {
  return `${id}:${posted.length + removed}`;
}

/** No platform's ids contain this character. */
const PRIVATE_MARK = "~";

/**
 * Returns the conversation of an event: that of its place, or a separate conversation if only one person sees the
 * answer. The next person who asks in that place sees nothing of the separate conversation.
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
