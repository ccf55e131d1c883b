import type { Mentions } from "./world.ts";

/**
 * The field in a request's body. A kind of mention that it omits notifies no one. Without the field, every mention
 * notifies.
 */
export interface AllowedMentions {
  parse?: readonly ("users" | "roles" | "everyone")[] | null | undefined;
  users?: readonly string[] | null | undefined;
  roles?: readonly string[] | null | undefined;
  replied_user?: boolean | null | undefined;
}

export interface MentionContext {
  /** If absent, every mention notifies. */
  allowed: AllowedMentions | undefined;
  /** Returns true if this author can notify the role. */
  mayMentionRole(roleId: string): boolean;
  mayMentionEveryone: boolean;
  isUser(userId: string): boolean;
  /** The author of the message that this message replies to. */
  repliedUserId: string | undefined;
}

/** The users that a text notifies. `repliedUserId` is separate, because the text did not mention that user. */
export interface Notified {
  userIds: string[];
  roleIds: string[];
  everyone: boolean;
  repliedUserId: string | undefined;
}

/** Evaluates a text and its `allowed_mentions` as Discord does. Mentions inside code do not notify. */
export function evaluateMentions(text: string, context: MentionContext): Notified {
  const { allowed, mayMentionRole, mayMentionEveryone, isUser, repliedUserId } = context;
  const plain = text.replaceAll(/```[\s\S]*?```|``[\s\S]*?``|`[^`]*`/g, " ");
  const parses = (kind: "users" | "roles" | "everyone") =>
    allowed === undefined || allowed.parse?.includes(kind) === true;
  const isAllowed = (kind: "users" | "roles", id: string) => parses(kind) || allowed?.[kind]?.includes(id) === true;
  const idsIn = (pattern: RegExp) => [...new Set([...plain.matchAll(pattern)].map(([, id = ""]) => id))];
  const repliesAloud = allowed === undefined || allowed.replied_user === true;
  return {
    userIds: idsIn(/<@!?(\d{17,20})>/g).filter((id) => isUser(id) && isAllowed("users", id)),
    roleIds: idsIn(/<@&(\d{17,20})>/g).filter((id) => mayMentionRole(id) && isAllowed("roles", id)),
    everyone: mayMentionEveryone && parses("everyone") && /@(everyone|here)\b/.test(plain),
    repliedUserId: repliesAloud ? repliedUserId : undefined,
  };
}

/** The mentions in the format of a message. */
export function toMentions({ userIds, roleIds, everyone, repliedUserId }: Notified): Mentions {
  const users = new Set(userIds);
  if (repliedUserId !== undefined) users.add(repliedUserId);
  return { userIds: users, roleIds: new Set(roleIds), everyone };
}

export const NO_MENTIONS: Mentions = { userIds: new Set(), roleIds: new Set(), everyone: false };
