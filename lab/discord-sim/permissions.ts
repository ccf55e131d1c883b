import type { Channel, Guild } from "./world.ts";

/** The permissions that the simulator knows, under discord.js's names. */
export const PERMISSIONS = {
  Administrator: 1n << 3n,
  ManageChannels: 1n << 4n,
  ManageGuild: 1n << 5n,
  AddReactions: 1n << 6n,
  ViewChannel: 1n << 10n,
  SendMessages: 1n << 11n,
  ManageMessages: 1n << 13n,
  EmbedLinks: 1n << 14n,
  AttachFiles: 1n << 15n,
  ReadMessageHistory: 1n << 16n,
  MentionEveryone: 1n << 17n,
  UseExternalEmojis: 1n << 18n,
  ManageRoles: 1n << 28n,
  ManageWebhooks: 1n << 29n,
  UseApplicationCommands: 1n << 31n,
  ManageThreads: 1n << 34n,
  CreatePublicThreads: 1n << 35n,
  CreatePrivateThreads: 1n << 36n,
  SendMessagesInThreads: 1n << 38n,
  ModerateMembers: 1n << 40n,
  BypassSlowmode: 1n << 52n,
} as const;

export type PermissionName = keyof typeof PERMISSIONS;

export const ALL_PERMISSIONS = toBits(Object.keys(PERMISSIONS) as PermissionName[]);

export const EVERYONE: readonly PermissionName[] = [
  "AddReactions",
  "ViewChannel",
  "SendMessages",
  "EmbedLinks",
  "AttachFiles",
  "ReadMessageHistory",
  "MentionEveryone",
  "UseExternalEmojis",
  "UseApplicationCommands",
  "CreatePublicThreads",
  "CreatePrivateThreads",
  "SendMessagesInThreads",
];

export function toBits(names: readonly PermissionName[]): bigint {
  return names.reduce((bits, name) => bits | PERMISSIONS[name], 0n);
}

export function hasPermission(bits: bigint, name: PermissionName): boolean {
  return (bits & PERMISSIONS[name]) !== 0n;
}

/**
 * Returns a member's permissions in a channel, from roles and overwrites as Discord computes them. For a thread, pass
 * its parent as `channel`, because the parent's overwrites apply.
 */
export function computePermissions(guild: Guild, userId: string, channel: Channel | undefined): bigint {
  const member = guild.members.get(userId);
  if (member === undefined) return 0n;
  if (guild.ownerId === userId) return ALL_PERMISSIONS;
  let bits = guild.roles.get(guild.id)?.permissions ?? 0n;
  for (const id of member.roleIds) bits |= guild.roles.get(id)?.permissions ?? 0n;
  if (hasPermission(bits, "Administrator")) return ALL_PERMISSIONS;
  if (channel === undefined) return bits;

  const everyone = channel.overwrites.get(guild.id);
  if (everyone !== undefined) bits = (bits & ~everyone.deny) | everyone.allow;
  let allow = 0n;
  let deny = 0n;
  for (const id of member.roleIds) {
    const overwrite = channel.overwrites.get(id);
    allow |= overwrite?.allow ?? 0n;
    deny |= overwrite?.deny ?? 0n;
  }
  bits = (bits & ~deny) | allow;
  const own = channel.overwrites.get(userId);
  if (own !== undefined) bits = (bits & ~own.deny) | own.allow;
  return hasPermission(bits, "ViewChannel") ? bits : 0n;
}
