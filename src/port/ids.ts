import { createHash } from "node:crypto";
import type { InboundEvent } from "./events.ts";

/**
 * Names an image on its buttons: its turn, and its number in the turn, from 1. Number 0 is the whole turn. Short, and
 * without ":", because platforms put it into their own ids; the "." distinguishes it from a turn's id.
 */
export interface PictureId {
  turnId: string;
  part: number;
}

export function toPictureId(turnId: string, part: number): string {
  return `${turnId}.${part}`;
}

/** Undefined for the id of a turn. */
export function readPictureId(id: string): PictureId | undefined {
  const [, turnId, part] = /^([\w-]+)\.(\d)$/.exec(id) ?? [];
  return turnId === undefined ? undefined : { turnId, part: Number(part) };
}

/** Names the calls of a turn that a button concerns. `digest` is in base64url. */
export function toCallsId(turnId: string, digest: string): string {
  return `${turnId}~${digest}`;
}

/** The turn of a button's id, with the digest of calls if the button concerns some. */
export function readCallsId(id: string): { turnId: string; digest: string | undefined } {
  const [, turnId = id, digest] = /^(.+)~([\w-]+)$/.exec(id) ?? [];
  return { turnId, digest };
}

/**
 * One of a turn's answers: the first is number 1, and each repeated request makes the next. Buttons carry it
 * instead of a turn's id; its suffix distinguishes it from the id of a turn or an image.
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

/** The turn of a button's id, which can name that turn, one of its answers or its calls. */
export function readTurnId(id: string): string {
  return readEditionId(readCallsId(id).turnId).turnId;
}

/** The key of a message's deletion event, derived from the key of the message. */
export function toDeletionKey(messageKey: string): string {
  return `${messageKey}:deleted`;
}

/** The turn of a batch: the same first event gives the same turn, so a resumed turn finds its record. */
export function toTurnId(eventKey: string): string {
  return createHash("sha256").update(eventKey).digest("base64url").slice(0, 16);
}

/** The nonce of a reply's next post. It stays the same until that post is confirmed. */
export function toNonce({ id, posted, removed }: { id: string; posted: readonly string[]; removed: number }): string {
  return `${id}:${posted.length + removed}`;
}

/** Occurs in no id of any platform. */
const PRIVATE_MARK = "~";

/**
 * The conversation that an event starts: the one of its place, or a separate one if only one person sees the answer.
 * The next person who asks there sees nothing of it, whatever place the adapter named.
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
