import type { Access, Judge } from "../policy/access.ts";
import type { Permission } from "../policy/rules.ts";
import type { Actor } from "../port/catalogue.ts";
import type { Author, ReplyAddress } from "../port/events.ts";
import { isSamePerson, type Owned } from "../port/identity.ts";
import type { Tool } from "../tools/tool.ts";
import type { TurnRecord } from "./record.ts";

/**
 * Decides who can do what with an answer or a picture. The ids that buttons, menus and forms send back can be forged,
 * so an id counts only if the person can see the answer or the picture with this id.
 */

/** An answer or a picture, with its owner and its location. */
interface Made extends Owned {
  reply: ReplyAddress;
}

/** The refusal for people who can see an answer but are not allowed to act on it. */
export const NOT_YOURS = "Only the person who asked, or a moderator, can do that.";

/** The refusal for people who cannot see the answer. */
export const NOT_HERE = "This belongs to another conversation, so nothing was done.";

/** True if the person can see it: the asker, and everyone in its channel unless it is private. */
export function maySee(by: Actor, made: Made): boolean {
  if (isOwner(by, made)) return true;
  return made.reply.visibleTo === undefined && isSamePlace(by.reply, made.reply);
}

/** True for the asker, and for a moderator of its channel. */
export function canManage(by: Actor, made: Made): boolean {
  return isOwner(by, made) || (by.author.isModerator === true && maySee(by, made));
}

function isOwner({ author, reply }: Actor, made: Made): boolean {
  return reply.platform === made.reply.platform && isSamePerson(author, made);
}

/** A field that one of the two places lacks does not distinguish them. */
function isSamePlace(one: ReplyAddress, other: ReplyAddress): boolean {
  if (one.platform !== other.platform || differ(one.workspaceId, other.workspaceId)) return false;
  if (one.channelId === other.channelId) return !differ(one.threadId, other.threadId);
  // A thread can be given without its channel.
  return one.threadId === other.channelId || one.channelId === other.threadId;
}

function differ(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && one !== other;
}

/**
 * The address for writing after a button press. A message that only one person sees is reachable through its command
 * for some minutes. After that, a press under the message makes that message reachable, but no other message in the
 * reply.
 */
export function toPressedReply({ reply }: Pick<Actor, "reply">, made: Made, messages: number): ReplyAddress {
  const isReached = made.reply.visibleTo !== undefined && made.reply.visibleTo === reply.visibleTo && messages <= 1;
  return isReached ? reply : made.reply;
}

/** The asker is not allowed to ask the question or to use its model. The message is a sentence for the asker. */
export class NotPermittedError extends Error {
  override readonly name = "NotPermittedError";
}

/** The permissions for one attempt: everything that both the asker and the person who pressed are allowed to do. */
export interface Permits {
  may(permission: Permission): boolean;
  /** The refusal for the person if they lack the permission. */
  findRefusal(permission: Permission): string | undefined;
  /** The first permitted model. If none is permitted, the first one. */
  chooseModel(models: readonly [string, ...string[]]): string;
  /** Throws a `NotPermittedError` if one of the permissions is missing. */
  check(...permissions: readonly Permission[]): void;
  chooseTools(tools: readonly Tool[]): readonly Tool[];
}

/** `pressedBy` is the person who pressed Retry. */
export async function readPermits(
  { judge }: Pick<Access, "judge">,
  record: Pick<TurnRecord, "author" | "reply">,
  pressedBy: Author | undefined,
): Promise<Permits> {
  return toPermits(await judge(), record, pressedBy);
}

function toPermits(
  judge: Judge,
  { author, reply }: Pick<TurnRecord, "author" | "reply">,
  pressedBy: Author | undefined,
): Permits {
  // The person's current roles count, not those at the time of the question.
  const isOwn = pressedBy !== undefined && isSamePerson(pressedBy, { author });
  const people = pressedBy === undefined ? [author] : isOwn ? [pressedBy] : [author, pressedBy];
  const denied = (permission: Permission) =>
    people.map((one) => judge({ author: one, reply }, permission)).find((one) => !one.isAllowed);
  const may = (permission: Permission) => denied(permission) === undefined;

  return {
    may,
    findRefusal: (permission) => denied(permission)?.refusal,
    chooseModel: (models) => models.find((model) => may(`model:${model}`)) ?? models[0],
    check(...permissions) {
      const decision = permissions.map(denied).find((one) => one !== undefined);
      if (decision !== undefined) throw new NotPermittedError(decision.refusal);
    },
    chooseTools: (tools) =>
      tools.filter(({ name, needs = [] }) => may(`tool:${name}`) && needs.every((need) => may(need))),
  };
}
