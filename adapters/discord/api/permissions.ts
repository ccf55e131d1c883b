import { PermissionFlagsBits } from "discord.js";

export type PermissionName = keyof typeof PermissionFlagsBits;

export interface Permission {
  name: PermissionName;
  /** As Discord's own settings call it. */
  title: string;
  /** In plain words. */
  why: string;
}

/** The permissions that the bot asks for in its invitation: no more than its features need. */
export const PERMISSIONS: ReadonlyArray<Permission> = [
  { name: "ViewChannel", title: "View Channels", why: "to be spoken to in a channel" },
  { name: "SendMessages", title: "Send Messages", why: "to answer in a channel" },
  { name: "SendMessagesInThreads", title: "Send Messages in Threads", why: "to answer in threads and forum posts" },
  { name: "CreatePublicThreads", title: "Create Public Threads", why: "to answer in a thread while a channel is busy" },
  {
    name: "ReadMessageHistory",
    title: "Read Message History",
    why: "to point at what it answers, and to read what was said in a thread before it was asked there",
  },
  { name: "AddReactions", title: "Add Reactions", why: "to show at a question that it waits for its turn" },
  { name: "AttachFiles", title: "Attach Files", why: "to post pictures, and very long answers as a file" },
];

/** All of them as Discord counts them. */
export const PERMISSION_BITS: bigint = PERMISSIONS.reduce((bits, { name }) => bits | PermissionFlagsBits[name], 0n);

const ALL = ~0n;

/** A member of a server. */
export interface Member {
  id: string;
  guildId: string;
  ownerId: string | undefined;
  roleIds: readonly string[];
}

/** A role grants permissions; everyone has the role with the server's own id. */
export interface Role {
  id: string;
  permissions: bigint | string;
}

/** A channel allows and denies something to a role or to one person. */
export interface Overwrite {
  id: string;
  allow: bigint | string;
  deny: bigint | string;
}

/** The permissions that a member's roles grant. The server's owner and administrators may do everything. */
export function guildPermissions({ id, guildId, ownerId, roleIds }: Member, roles: Iterable<Role>): bigint {
  const ids = new Set([guildId, ...roleIds]);
  let granted = 0n;
  for (const role of roles) if (ids.has(role.id)) granted |= BigInt(role.permissions);
  return ownerId === id || (granted & PermissionFlagsBits.Administrator) !== 0n ? ALL : granted;
}

/**
 * The permissions of a member in a channel: the server's, then the channel's overwrites for everyone, for the roles
 * taken together, and for the member. https://docs.discord.com/developers/topics/permissions#permission-overwrites
 */
export function channelPermissions(granted: bigint, member: Member, overwrites: Iterable<Overwrite>): bigint {
  if (granted === ALL) return ALL;
  const known = new Map([...overwrites].map((overwrite) => [overwrite.id, overwrite]));
  let bits = granted;
  for (const ids of [[member.guildId], member.roleIds.filter((id) => id !== member.guildId), [member.id]]) {
    const found = ids.flatMap((id) => known.get(id) ?? []);
    for (const { deny } of found) bits &= ~BigInt(deny);
    for (const { allow } of found) bits |= BigInt(allow);
  }
  return bits;
}

/** The link by which somebody who manages a server lets the bot in. */
export function inviteLink(applicationId: string): string {
  const query = new URLSearchParams({
    client_id: applicationId,
    scope: "bot applications.commands",
    permissions: PERMISSION_BITS.toString(),
  });
  return `https://discord.com/oauth2/authorize?${query.toString()}`;
}
