import { ChannelType, GuildPremiumTier, PermissionFlagsBits } from "discord.js";
import { channelPermissions, guildPermissions, type Member } from "./permissions.ts";
import type { Place, Servers } from "./servers.ts";

/** The kind of a channel decides which messages belong to one conversation. */
export type RoomKind = "direct" | "thread" | "channel";

export interface RecentRoom {
  channelId: string;
  guildId: string;
  lastMessageId: string;
}

export interface Rooms {
  kindOf(channelId: string, guildId: string | undefined, type: ChannelType | undefined): RoomKind;
  /** The role that Discord creates for the bot. Users mention it as often as they mention the bot. */
  botRoleId(guildId: string | undefined): string | undefined;
  guildIdOf(channelId: string): string | undefined;
  parentOf(threadId: string): string | undefined;
  /** The category of a channel, or of a thread's channel. */
  categoryOf(channelId: string): string | undefined;
  nameOfChannel(id: string): string | undefined;
  nameOfRole(guildId: string | undefined, id: string): string | undefined;
  guildOfRole(id: string): string | undefined;
  /** True also if the permissions are unknown. */
  mayWrite(channelId: string): boolean;
  /** Discord requires this permission for replies too. True also if the permissions are unknown. */
  mayReadHistory(channelId: string): boolean;
  mayReact(channelId: string): boolean;
  mayOpenThread(channelId: string): boolean;
  /** The largest file in a channel, given its server's boosts. Undefined if unknown or if the usual limit applies. */
  maxFileBytesIn(channelId: string): number | undefined;
  /** True if the user's roles allow managing the channel. False if the permissions are unknown. */
  mayManage(channelId: string, userId: string, roleIds: readonly string[]): boolean;
  /** The channels and threads that the bot can read, those with the newest messages first. */
  recent(): RecentRoom[];
}

const THREADS = new Set([ChannelType.PublicThread, ChannelType.PrivateThread, ChannelType.AnnouncementThread]);
const WITH_THREADS = new Set([ChannelType.GuildText, ChannelType.GuildAnnouncement]);
/** Channels that contain messages themselves. Forums are missing, because they contain threads. */
const WITH_MESSAGES = new Set([...THREADS, ...WITH_THREADS, ChannelType.GuildVoice, ChannelType.GuildStageVoice]);
const DIRECT = new Set([ChannelType.DM, ChannelType.GroupDM]);

const { ViewChannel, ReadMessageHistory, AddReactions, SendMessages, SendMessagesInThreads } = PermissionFlagsBits;
const { CreatePublicThreads, ManageChannels, Administrator } = PermissionFlagsBits;
const TO_READ = ViewChannel | ReadMessageHistory;
const TO_REACT = TO_READ | AddReactions;
const TO_WRITE = ViewChannel | SendMessages;
const TO_WRITE_IN_THREAD = ViewChannel | SendMessagesInThreads;
const TO_OPEN = CreatePublicThreads | SendMessagesInThreads;
/**
 * The only permissions of a member with a timeout:
 * https://docs.discord.com/developers/topics/permissions#permissions-for-timed-out-members
 */
const TIMED_OUT = TO_READ;

/** https://support.discord.com/hc/en-us/articles/360028038352-Server-Boosting-FAQ */
const BOOSTED_FILE_BYTES: Partial<Record<GuildPremiumTier, number>> = {
  [GuildPremiumTier.Tier2]: 50 * 1024 * 1024,
  [GuildPremiumTier.Tier3]: 100 * 1024 * 1024,
};

/** True if the type alone shows that the channel belongs to a server. */
export function isOfGuild(type: ChannelType | undefined): boolean {
  return type !== undefined && !DIRECT.has(type);
}

function isThread({ type }: Place): boolean {
  return type !== undefined && THREADS.has(type);
}

export function createRooms(servers: Servers): Rooms {
  /** A member's permissions in a place, computed as Discord documents it. A thread has its channel's permissions. */
  function permissionsIn(place: Place, id: string, roleIds: readonly string[]): bigint {
    const { id: guildId, ownerId, roles } = place.server;
    const member: Member = { id, guildId, ownerId, roleIds };
    const known = [...roles.values()].map((role) => ({ id: role.id, permissions: role.permissions ?? 0n }));
    const holder = isThread(place) ? servers.findPlace(place.parentId) : place;
    return channelPermissions(guildPermissions(member, known), member, holder?.overwrites ?? []);
  }

  /** Undefined if a server that imitates Discord does not report the permissions. */
  function ownPermissions(place: Place): bigint | undefined {
    const { id, roles, bot } = place.server;
    const botId = servers.botId();
    const hasRoles = roles.has(id) && roles.values().every(({ permissions }) => permissions !== undefined);
    const isWhole = !isThread(place) || servers.findPlace(place.parentId) !== undefined;
    if (!hasRoles || !isWhole || bot === undefined || botId === undefined) return undefined;
    const granted = permissionsIn(place, botId, bot.roleIds);
    const isTimedOut = bot.timedOutUntil !== undefined && Date.parse(bot.timedOutUntil) > Date.now();
    return isTimedOut && (granted & Administrator) === 0n ? granted & TIMED_OUT : granted;
  }

  function mayOrUnknown(place: Place | undefined, wanted: bigint): boolean {
    const granted = place && ownPermissions(place);
    return granted === undefined || (granted & wanted) === wanted;
  }

  return {
    kindOf(channelId, guildId, type) {
      const known = type ?? servers.findPlace(channelId)?.type;
      if (guildId === undefined && !isOfGuild(known)) return "direct";
      return known !== undefined && THREADS.has(known) ? "thread" : "channel";
    },
    botRoleId(guildId) {
      const botId = servers.botId();
      const roles = servers.find(guildId)?.roles.values();
      return botId === undefined ? undefined : roles?.find((role) => role.botId === botId)?.id;
    },
    guildIdOf: (channelId) => servers.findPlace(channelId)?.server.id,
    parentOf: (threadId) => servers.findPlace(threadId)?.parentId,
    categoryOf(channelId) {
      const place = servers.findPlace(channelId);
      return (place !== undefined && isThread(place) ? servers.findPlace(place.parentId) : place)?.parentId;
    },
    nameOfChannel: (id) => servers.findPlace(id)?.name,
    nameOfRole: (guildId, id) => servers.find(guildId)?.roles.get(id)?.name,
    guildOfRole: (id) => servers.all().find(({ roles }) => roles.has(id))?.id,
    mayWrite(channelId) {
      const place = servers.findPlace(channelId);
      return mayOrUnknown(place, place !== undefined && isThread(place) ? TO_WRITE_IN_THREAD : TO_WRITE);
    },
    mayReadHistory: (channelId) => mayOrUnknown(servers.findPlace(channelId), TO_READ),
    mayReact: (channelId) => mayOrUnknown(servers.findPlace(channelId), TO_REACT),
    mayOpenThread(channelId) {
      const place = servers.findPlace(channelId);
      if (place?.type === undefined || !WITH_THREADS.has(place.type)) return false;
      return ((ownPermissions(place) ?? 0n) & TO_OPEN) === TO_OPEN;
    },
    maxFileBytesIn: (channelId) =>
      BOOSTED_FILE_BYTES[servers.findPlace(channelId)?.server.premiumTier ?? GuildPremiumTier.None],
    mayManage(channelId, userId, roleIds) {
      const place = servers.findPlace(channelId);
      return place !== undefined && (permissionsIn(place, userId, roleIds) & ManageChannels) !== 0n;
    },
    recent() {
      const found: RecentRoom[] = [];
      for (const place of servers.places()) {
        const { id: channelId, server, type, lastMessageId } = place;
        // Discord can omit the last message of an empty channel.
        if (lastMessageId === undefined || type === undefined || !WITH_MESSAGES.has(type)) continue;
        if (mayOrUnknown(place, TO_READ)) found.push({ channelId, guildId: server.id, lastMessageId });
      }
      return found.sort((a, b) => (BigInt(a.lastMessageId) > BigInt(b.lastMessageId) ? -1 : 1));
    },
  };
}
