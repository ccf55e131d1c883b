import { PermissionFlagsBits } from "discord.js";

export type PermissionName = keyof typeof PermissionFlagsBits;

export interface Permission {
  name: PermissionName;
  title: string;
  why: string;
}

/** The permissions that the invitation requests. Each one is needed for a feature. */
export const PERMISSIONS: ReadonlyArray<Permission> = [
  { name: "ViewChannel", title: "View Channels", why: "to see messages in a channel" },
  { name: "SendMessages", title: "Send Messages", why: "to answer in a channel" },
  { name: "SendMessagesInThreads", title: "Send Messages in Threads", why: "to answer in threads and forum posts" },
  { name: "CreatePublicThreads", title: "Create Public Threads", why: "to answer in a thread when a channel is busy" },
  {
    name: "ReadMessageHistory",
    title: "Read Message History",
    why: "to reply to a message, and to read the earlier messages of a thread",
  },
  { name: "AddReactions", title: "Add Reactions", why: "to mark a question that is waiting for its turn" },
  { name: "AttachFiles", title: "Attach Files", why: "to post images, and very long answers as a file" },
];

export const PERMISSION_BITS: bigint = PERMISSIONS.reduce((bits, { name }) => bits | PermissionFlagsBits[name], 0n);

const ALL = ~0n;

export interface Member {
  id: string;
  guildId: string;
  ownerId: string | undefined;
  roleIds: readonly string[];
}

/** A role grants permissions. The role whose id is the server's id applies to everyone. */
export interface Role {
  id: string;
  permissions: bigint | string;
}

export interface Overwrite {
  id: string;
  allow: bigint | string;
  deny: bigint | string;
}

/** The permissions from a member's roles. The server's owner and administrators have all permissions. */
export function guildPermissions({ id, guildId, ownerId, roleIds }: Member, roles: Iterable<Role>): bigint {
  const ids = new Set([guildId, ...roleIds]);
  let granted = 0n;
  for (const role of roles) if (ids.has(role.id)) granted |= BigInt(role.permissions);
  return ownerId === id || (granted & PermissionFlagsBits.Administrator) !== 0n ? ALL : granted;
}

/**
 * A member's permissions in a channel: the server's, then the channel's overwrites for everyone, for all roles
 * together, and for the member. https://docs.discord.com/developers/topics/permissions#permission-overwrites
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

export function inviteLink(applicationId: string): string {
  const query = new URLSearchParams({
    client_id: applicationId,
    scope: "bot applications.commands",
    permissions: PERMISSION_BITS.toString(),
  });
  return `https://discord.com/oauth2/authorize?${query.toString()}`;
}
