import {
  type APIChannel,
  type APIGuild,
  type APIGuildMember,
  type APIOverwrite,
  ChannelType,
  PermissionFlagsBits,
  type RouteLike,
  Routes,
} from "discord.js";
import type { Adapter } from "../../../src/port/adapter.ts";
import { type Api, read } from "../api/client.ts";
import { ApiError } from "../api/error.ts";
import { channelPermissions, guildPermissions, type Member } from "../api/permissions.ts";

const TO_READ = PermissionFlagsBits.ViewChannel | PermissionFlagsBits.ReadMessageHistory;
/** Threads that everybody sees who sees their channel; a private one is for its members alone. */
const OPEN_THREADS = new Set([ChannelType.PublicThread, ChannelType.AnnouncementThread]);
/** An id that no member has: it has the permissions of everyone. */
const ANYBODY = "0";

/** Makes `mayShow` of the adapter: in a channel only what everybody on the server may read is shown, or the same channel. */
export function createMayShow({ api }: { api: Pick<Api, "call"> }): NonNullable<Adapter["mayShow"]> {
  /** Undefined where Discord refuses. */
  async function find<T>(route: RouteLike, signal: AbortSignal): Promise<T | undefined> {
    try {
      return await read<T>(api, route, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ApiError) return undefined;
      throw error;
    }
  }

  return async (id, { author, reply }, signal) => {
    const [, channelId] = /^discord:(\d+)(?::|$)/.exec(id) ?? [];
    if (channelId === undefined) return false;
    if (channelId === reply.channelId || channelId === reply.threadId) return true;
    const channel = await find<APIChannel>(Routes.channel(channelId), signal);
    if (channel === undefined || !("guild_id" in channel) || channel.guild_id === undefined) return false;
    const { guild_id: guildId } = channel;
    const isReadAlone = reply.workspaceId === undefined || reply.visibleTo !== undefined;
    if (!isReadAlone && reply.workspaceId !== guildId) return false;
    const place = channel.type >= ChannelType.AnnouncementThread && channel.type <= ChannelType.PrivateThread;
    if (place && !OPEN_THREADS.has(channel.type)) return false;
    const parentId = place && "parent_id" in channel ? channel.parent_id : undefined;
    const [guild, parent, member] = await Promise.all([
      find<APIGuild>(Routes.guild(guildId), signal),
      parentId ? find<APIChannel>(Routes.channel(parentId), signal) : channel,
      find<APIGuildMember>(Routes.guildMember(guildId, author.id), signal),
    ]);
    if (guild === undefined || parent === undefined || member === undefined) return false;
    const overwrites = "permission_overwrites" in parent ? (parent.permission_overwrites ?? []) : [];
    const may = (userId: string, roleIds: readonly string[]) =>
      mayRead({ id: userId, guildId, ownerId: guild.owner_id, roleIds }, guild, overwrites);
    return may(author.id, member.roles) && (isReadAlone || may(ANYBODY, []));
  };
}

function mayRead(member: Member, { roles }: APIGuild, overwrites: readonly APIOverwrite[]): boolean {
  const bits = channelPermissions(guildPermissions(member, roles), member, overwrites);
  return (bits & TO_READ) === TO_READ;
}
