import type { Mentions } from "./world.ts";

/** The field of a body; what is absent from it is not notified, what is absent altogether is. */
export interface AllowedMentions {
  parse?: readonly ("users" | "roles" | "everyone")[] | null | undefined;
  users?: readonly string[] | null | undefined;
  roles?: readonly string[] | null | undefined;
  replied_user?: boolean | null | undefined;
}

export interface MentionContext {
  /** Absent: everything is notified. */
  allowed: AllowedMentions | undefined;
  /** Roles this author may notify. */
  mayMentionRole(roleId: string): boolean;
  mayMentionEveryone: boolean;
  isUser(userId: string): boolean;
  /** The author of the message that is replied to. */
  repliedUserId: string | undefined;
}

/** Who a text notifies. `repliedUserId` is apart, because the text did not name that person. */
export interface Notified {
  userIds: string[];
  roleIds: string[];
  everyone: boolean;
  repliedUserId: string | undefined;
}

/** Evaluates a text and its `allowed_mentions` as Discord does: nothing inside code notifies. */
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

/** The same as it stands in the message. */
export function toMentions({ userIds, roleIds, everyone, repliedUserId }: Notified): Mentions {
  const users = new Set(userIds);
  if (repliedUserId !== undefined) users.add(repliedUserId);
  return { userIds: users, roleIds: new Set(roleIds), everyone };
}

export const NO_MENTIONS: Mentions = { userIds: new Set(), roleIds: new Set(), everyone: false };
