import { PermissionFlagsBits } from "discord.js";

export type PermissionName = keyof typeof PermissionFlagsBits;

export interface Permission {
  name: PermissionName;
  /** As Discord's own settings call it. */
  title: string;
  /** In plain words. */
  why: string;
}

/** What the bot asks for when it is invited: nothing that it can do without. */
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

/** What Discord grants with a role; everyone has the role with the server's own id. */
export interface Role {
  id: string;
  permissions: bigint | string;
}

/** What a channel says otherwise, of a role or of one person. */
export interface Overwrite {
  id: string;
  allow: bigint | string;
  deny: bigint | string;
}

/** What the roles of a member grant, as Discord counts it. Its owner and administrators may do everything. */
export function guildPermissions({ id, guildId, ownerId, roleIds }: Member, roles: Iterable<Role>): bigint {
  const ids = new Set([guildId, ...roleIds]);
  let granted = 0n;
  for (const role of roles) if (ids.has(role.id)) granted |= BigInt(role.permissions);
  return ownerId === id || (granted & PermissionFlagsBits.Administrator) !== 0n ? ALL : granted;
}

/**
 * What a member may do in a channel: what the server grants, then what the channel says of everyone, of the roles taken
 * together, and of the member. https://docs.discord.com/developers/topics/permissions#permission-overwrites
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
