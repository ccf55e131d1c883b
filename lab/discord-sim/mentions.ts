import type { Mentions } from "./world.ts";

/**
 * A request's `allowed_mentions`. If it omits a kind of mention, such mentions notify no one. If a request has no
 * `allowed_mentions`, every mention notifies.
 */
export interface AllowedMentions {
  parse?: readonly ("users" | "roles" | "everyone")[] | null | undefined;
  users?: readonly string[] | null | undefined;
  roles?: readonly string[] | null | undefined;
  replied_user?: boolean | null | undefined;
}

export interface MentionContext {
  /** Absent: every mention notifies. */
  allowed: AllowedMentions | undefined;
  mayMentionRole(roleId: string): boolean;
  mayMentionEveryone: boolean;
  isUser(userId: string): boolean;
  /** The author of the message that this message replies to. */
  repliedUserId: string | undefined;
}

/** The people that a text notifies. `repliedUserId` is separate, because a reply notifies without a mention. */
export interface Notified {
  userIds: string[];
  roleIds: string[];
  everyone: boolean;
  repliedUserId: string | undefined;
}

/** Evaluates a text and its `allowed_mentions` as Discord does. Mentions in code do not notify. */
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

export function toMentions({ userIds, roleIds, everyone, repliedUserId }: Notified): Mentions {
  const users = new Set(userIds);
  if (repliedUserId !== undefined) users.add(repliedUserId);
  return { userIds: users, roleIds: new Set(roleIds), everyone };
}

export const NO_MENTIONS: Mentions = { userIds: new Set(), roleIds: new Set(), everyone: false };
