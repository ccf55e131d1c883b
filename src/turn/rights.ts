import type { Access } from "../policy/access.ts";
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

interface Made extends Owned {
  reply: ReplyAddress;
}

/** The refusal for people who can see an answer but are not allowed to change it. */
export const NOT_YOURS = "Only the person who asked, or a moderator, can do that.";

/** The refusal for people who cannot see the answer. */
export const NOT_HERE = "This belongs to another conversation, so nothing was done.";

/** True if the person asked for it, or if it is in the person's channel and not private. */
export function maySee(by: Actor, made: Made): boolean {
  if (isOwner(by, made)) return true;
  return made.reply.visibleTo === undefined && isSamePlace(by.reply, made.reply);
}

/** True for the person who asked, and for a moderator of the channel. */
export function canManage(by: Actor, made: Made): boolean {
  return isOwner(by, made) || (by.author.isModerator === true && maySee(by, made));
}

function isOwner({ author, reply }: Actor, made: Made): boolean {
  return reply.platform === made.reply.platform && isSamePerson(author, made);
}

/** True if both addresses are in the same channel or thread. A field that one address lacks matches any value. */
function isSamePlace(one: ReplyAddress, other: ReplyAddress): boolean {
  if (one.platform !== other.platform || differ(one.workspaceId, other.workspaceId)) return false;
  if (one.channelId === other.channelId) return !differ(one.threadId, other.threadId);
  // An address can name a thread without naming the thread's parent channel.
  return one.threadId === other.channelId || one.channelId === other.threadId;
}

function differ(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && one !== other;
}

/**
 * The address at which the bot writes after a button press. The bot can change a private message through its command
 * for some minutes. After that, the bot can change it only after a press on a button of that message.
 */
export function toPressedReply({ reply }: Pick<Actor, "reply">, made: Made, messages: number): ReplyAddress {
  const isReached = made.reply.visibleTo !== undefined && made.reply.visibleTo === reply.visibleTo && messages <= 1;
  return isReached ? reply : made.reply;
}

/** The asker lacks a permission. The error's message is a sentence for the asker. */
export class NotPermittedError extends Error {
  override readonly name = "NotPermittedError";
}

/** The permissions of an attempt: what both the asker and the person who pressed Retry are allowed to do. */
export interface Permits {
  may(permission: Permission): boolean;
  findRefusal(permission: Permission): string | undefined;
  /** Returns the first permitted model. If none is permitted, returns the first model. */
  chooseModel(models: readonly [string, ...string[]]): string;
  check(...permissions: readonly Permission[]): void;
  chooseTools(tools: readonly Tool[]): readonly Tool[];
}

export async function readPermits(
  access: Pick<Access, "judge">,
  { author, reply }: Pick<TurnRecord, "author" | "reply">,
  pressedBy: Author | undefined,
): Promise<Permits> {
  const judge = await access.judge();
  // A person who retries their own question gets the roles that they have now, not those from the time of the question.
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
