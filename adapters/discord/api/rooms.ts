import {
  ChannelType,
  type Client,
  type GuildBasedChannel,
  GuildPremiumTier,
  PermissionFlagsBits,
  PermissionsBitField,
  type Role,
} from "discord.js";
import { channelPermissions, guildPermissions } from "./permissions.ts";

/** The kind of place decides where a conversation begins and ends. */
export type RoomKind = "direct" | "thread" | "channel";

/** A place where people may have written while the bot was away. */
export interface RecentRoom {
  channelId: string;
  guildId: string;
  lastMessageId: string;
}

/** The channels, names and permissions that the gateway has told. */
export interface Rooms {
  kindOf(channelId: string, guildId: string | undefined, type: ChannelType | undefined): RoomKind;
  /** The bot's own role, by which people mention it as often as by its name. */
  botRoleId(guildId: string | undefined): string | undefined;
  guildIdOf(channelId: string): string | undefined;
  /** The channel that a thread belongs to. */
  parentOf(threadId: string): string | undefined;
  /** The category that a channel, or the channel of a thread, is in. */
  categoryOf(channelId: string): string | undefined;
  nameOfChannel(id: string): string | undefined;
  nameOfRole(guildId: string | undefined, id: string): string | undefined;
  guildOfRole(id: string): string | undefined;
  /** True also where nothing is known. */
  mayWrite(channelId: string): boolean;
  /** A reply needs this too. True also where nothing is known. */
  mayReadHistory(channelId: string): boolean;
  mayReact(channelId: string): boolean;
  mayOpenThread(channelId: string): boolean;
  /** Largest file that the boosts of a channel's server allow. Undefined: as everywhere, or not known. */
  maxFileBytesIn(channelId: string): number | undefined;
  /** True for a person whose roles let them manage the channel. False also where nothing is known. */
  mayManage(channelId: string, userId: string, roleIds: readonly string[]): boolean;
  /** Channels and threads of a shard's servers that the bot may read, the one with the newest message first. */
  recent(shard: number): RecentRoom[];
}

const THREADS = new Set([ChannelType.PublicThread, ChannelType.PrivateThread, ChannelType.AnnouncementThread]);
const TO_OPEN = [PermissionFlagsBits.CreatePublicThreads, PermissionFlagsBits.SendMessagesInThreads];
const TO_WRITE = [PermissionFlagsBits.ViewChannel, PermissionFlagsBits.SendMessages];
const TO_WRITE_IN_THREAD = [PermissionFlagsBits.ViewChannel, PermissionFlagsBits.SendMessagesInThreads];
const TO_READ = [PermissionFlagsBits.ViewChannel, PermissionFlagsBits.ReadMessageHistory];

/** https://support.discord.com/hc/en-us/articles/360028038352-Server-Boosting-FAQ */
const BOOSTED_FILE_BYTES: Partial<Record<GuildPremiumTier, number>> = {
  [GuildPremiumTier.Tier2]: 50 * 1024 * 1024,
  [GuildPremiumTier.Tier3]: 100 * 1024 * 1024,
};

const TO_REACT = [...TO_READ, PermissionFlagsBits.AddReactions];
/** All that is left to who is timed out: https://docs.discord.com/developers/topics/permissions#permissions-for-timed-out-members */
const TIMED_OUT = PermissionFlagsBits.ViewChannel | PermissionFlagsBits.ReadMessageHistory;

/** Computed here, because the library does so only for cached members, and most people are not cached. */
function permissionsIn(channel: GuildBasedChannel, id: string, roleIds: readonly string[]): bigint {
  const { guild } = channel;
  const member = { id, guildId: guild.id, ownerId: guild.ownerId, roleIds };
  const roles = guild.roles.cache.map((role) => ({ id: role.id, permissions: toldOf(role)?.bitfield ?? 0n }));
  const place = channel.isThread() ? channel.parent : channel;
  const overwrites = place?.permissionOverwrites.cache.map((overwrite) => {
    return { id: overwrite.id, allow: overwrite.allow.bitfield, deny: overwrite.deny.bitfield };
  });
  return channelPermissions(guildPermissions(member, roles), member, overwrites ?? []);
}

/** Undefined where the server does not tell the permissions of a role, which the library takes for impossible. */
function toldOf(role: Role | undefined): Role["permissions"] | undefined {
  return role?.permissions;
}

const DIRECT = new Set([ChannelType.DM, ChannelType.GroupDM]);

/** True where the type alone says that a channel belongs to a server. */
export function isOfGuild(type: ChannelType | undefined): boolean {
  return type !== undefined && !DIRECT.has(type);
}

export function createRooms(client: Client): Rooms {
  /** Null where the server does not tell. */
  function ownPermissions(channel: GuildBasedChannel): Role["permissions"] | null {
    const { cache } = channel.guild.roles;
    const isTold = cache.has(channel.guildId) && cache.every((role) => toldOf(role) !== undefined);
    const granted = isTold && client.user !== null ? channel.permissionsFor(client.user) : null;
    const isTimedOut = channel.guild.members.me?.isCommunicationDisabled() === true;
    if (granted === null || !isTimedOut || granted.has(PermissionFlagsBits.Administrator)) return granted;
    return new PermissionsBitField(granted.bitfield & TIMED_OUT);
  }

  function mayAll(channel: GuildBasedChannel, permissions: readonly bigint[]): boolean {
    return ownPermissions(channel)?.has([...permissions]) === true;
  }

  function mayOrUnknown(channel: GuildBasedChannel | undefined, permissions: readonly bigint[]): boolean {
    return channel === undefined || (ownPermissions(channel)?.has([...permissions]) ?? true);
  }

  function guildChannel(id: string): GuildBasedChannel | undefined {
    const channel = client.channels.cache.get(id);
    return channel === undefined || channel.isDMBased() ? undefined : channel;
  }

  return {
    kindOf(channelId, guildId, type) {
      const known = type ?? client.channels.cache.get(channelId)?.type;
      if (guildId === undefined && !isOfGuild(known)) return "direct";
      return known !== undefined && THREADS.has(known) ? "thread" : "channel";
    },
    botRoleId(guildId) {
      const guild = client.guilds.cache.get(guildId ?? "");
      return client.user === null ? undefined : guild?.roles.botRoleFor(client.user)?.id;
    },
    guildIdOf: (channelId) => guildChannel(channelId)?.guildId,
    parentOf: (threadId) => guildChannel(threadId)?.parentId ?? undefined,
    categoryOf(channelId) {
      const channel = guildChannel(channelId);
      return (channel?.isThread() === true ? channel.parent : channel)?.parentId ?? undefined;
    },
    nameOfChannel: (id) => guildChannel(id)?.name,
    nameOfRole: (guildId, id) => client.guilds.cache.get(guildId ?? "")?.roles.cache.get(id)?.name,
    guildOfRole: (id) => client.guilds.cache.find(({ roles }) => roles.cache.has(id))?.id,
    mayWrite(channelId) {
      const channel = guildChannel(channelId);
      return mayOrUnknown(channel, channel?.isThread() === true ? TO_WRITE_IN_THREAD : TO_WRITE);
    },
    mayReadHistory: (channelId) => mayOrUnknown(guildChannel(channelId), TO_READ),
    mayReact: (channelId) => mayOrUnknown(guildChannel(channelId), TO_REACT),
    mayOpenThread(channelId) {
      const channel = guildChannel(channelId);
      const hasThreads = channel?.type === ChannelType.GuildText || channel?.type === ChannelType.GuildAnnouncement;
      return hasThreads && mayAll(channel, TO_OPEN);
    },
    maxFileBytesIn: (channelId) => BOOSTED_FILE_BYTES[guildChannel(channelId)?.guild.premiumTier ?? 0],
    mayManage(channelId, userId, roleIds) {
      const channel = guildChannel(channelId);
      if (channel === undefined) return false;
      return (permissionsIn(channel, userId, roleIds) & PermissionFlagsBits.ManageChannels) !== 0n;
    },
    recent(shard) {
      const found: RecentRoom[] = [];
      for (const channel of client.channels.cache.values()) {
        // Discord may leave the last message out where there was none.
        if (channel.isDMBased() || !channel.isTextBased() || !channel.lastMessageId) continue;
        if (channel.guild.shardId !== shard || !mayOrUnknown(channel, TO_READ)) continue;
        found.push({ channelId: channel.id, guildId: channel.guildId, lastMessageId: channel.lastMessageId });
      }
      return found.sort((a, b) => (BigInt(a.lastMessageId) > BigInt(b.lastMessageId) ? -1 : 1));
    },
  };
}
