import type { Actor } from "../port/catalogue.ts";
import type { ReplyAddress } from "../port/events.ts";
import { isSamePerson, type Owned } from "../port/identity.ts";

/**
 * Decides who may do what with an answer or a picture. The id that a button, a menu or a form brings back can be forged:
 * it counts only where the person can see what it names.
 */

/** An answer or a picture: whose it is, and where it stands. */
export interface Made extends Owned {
  reply: ReplyAddress;
}

/** The refusal for people who may see an answer, and do no more. */
export const NOT_YOURS = "Only the person who asked, or a moderator, can do that.";
/** The refusal for people who cannot have the answer before them. */
export const NOT_HERE = "This belongs to another conversation, so nothing was done.";

/**
 * True when somebody can have it before them: the person who asked, and everybody in its place unless it is private.
 */
export function maySee(by: Actor, made: Made): boolean {
  if (isOwner(by, made)) return true;
  return made.reply.visibleTo === undefined && isSamePlace(by.reply, made.reply);
}

/** True for the person who asked, and for a moderator of its place. */
export function mayPress(by: Actor, made: Made): boolean {
  return isOwner(by, made) || (by.author.isModerator === true && maySee(by, made));
}

function isOwner({ author, reply }: Actor, made: Made): boolean {
  return reply.platform === made.reply.platform && isSamePerson(author, made);
}

/** A field that is absent does not tell one place from another. */
function isSamePlace(one: ReplyAddress, other: ReplyAddress): boolean {
  if (one.platform !== other.platform || differ(one.workspaceId, other.workspaceId)) return false;
  if (one.channelId === other.channelId) return !differ(one.threadId, other.threadId);
  // A thread may be named without the channel it belongs to.
  return one.threadId === other.channelId || one.channelId === other.threadId;
}

function differ(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && one !== other;
}

/**
 * The address at which something is written after a press under it. What only one person sees is reached by its command
 * for minutes alone, and then by what is pressed under it: that one message, and no others of the same reply.
 */
export function toPressedReply({ reply }: Pick<Actor, "reply">, made: Made, messages: number): ReplyAddress {
  const isReached = made.reply.visibleTo !== undefined && made.reply.visibleTo === reply.visibleTo && messages <= 1;
  return isReached ? reply : made.reply;
}
