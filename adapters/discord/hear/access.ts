import {
  type APIChannel,
  type APIGuild,
  type APIGuildMember,
  type APIOverwrite,
  ChannelType,
  OverwriteType,
  PermissionFlagsBits,
  type RouteLike,
  Routes,
} from "discord.js";
import { createSharedLookups } from "../../../src/concurrency/shared-lookups.ts";
import type { Adapter } from "../../../src/port/adapter.ts";
import type { Actor } from "../../../src/port/catalogue.ts";
import { type Api, readPatiently } from "../api/client.ts";
import { ApiError } from "../api/error.ts";
import { channelPermissions, guildPermissions, type Member } from "../api/permissions.ts";

const { ViewChannel, ReadMessageHistory } = PermissionFlagsBits;
const TO_READ = ViewChannel | ReadMessageHistory;
/** Everyone who can see the channel can see these threads. Only its members can see a private thread. */
const OPEN_THREADS = new Set([ChannelType.PublicThread, ChannelType.AnnouncementThread]);
/** A user id that no member has. It yields only the permissions that come from roles. */
const ANYBODY = "0";
/** Most members to check who have overwrites in the two channels. Each costs a call. */
const MAX_OWN = 20;

/**
 * Implements `Adapter.mayShow`. A channel shows content from itself, and from channels that everyone who can see it can
 * read too.
 */
export function createMayShow({ api }: { api: Pick<Api, "call"> }): NonNullable<Adapter["mayShow"]> {
  const shared = createSharedLookups();

  /** Undefined if the object does not exist or the bot cannot see it. Rejects if Discord does not answer. */
  function find<T>(route: RouteLike, signal: AbortSignal): Promise<T | undefined> {
    return shared(signal, route, async () => {
      try {
        return await readPatiently<T>(api, route, signal);
      } catch (error) {
        if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return undefined;
        throw error;
      }
    });
  }

  /** Finds the channel whose overwrites apply to a place. For a thread, this is its channel. */
  async function findOwner(id: string, signal: AbortSignal): Promise<{ place: OfGuild; owner: OfGuild } | undefined> {
    const place = await find<APIChannel>(Routes.channel(id), signal);
    if (!isOfGuild(place)) return undefined;
    const parentId = isThread(place) && "parent_id" in place ? place.parent_id : undefined;
    const owner = parentId ? await find<APIChannel>(Routes.channel(parentId), signal) : place;
    return isOfGuild(owner) ? { place, owner } : undefined;
  }

  async function isReadByAll(source: OfGuild, room: OfGuild, guild: APIGuild, signal: AbortSignal): Promise<boolean> {
    const [from, to] = [overwritesOf(source), overwritesOf(room)];
    const leaks = (member: Member) => may(member, guild, to, ViewChannel) && !may(member, guild, from, TO_READ);
    const toMember = (id: string, roleIds: readonly string[]) => ({
      id,
      guildId: guild.id,
      ownerId: guild.owner_id,
      roleIds,
    });
    const own = [...new Set([...from, ...to].filter(({ type }) => type === OverwriteType.Member).map(({ id }) => id))];
    if (own.length > MAX_OWN) return false;
    if (toRoleSets(guild, from, to).some((roleIds) => leaks(toMember(ANYBODY, roleIds)))) return false;
    const members = await Promise.all(own.map((id) => find<APIGuildMember>(Routes.guildMember(guild.id, id), signal)));
    // Skips bots, because no person reads through them, and members who have left.
    return !members.some(
      (member) => member?.user.bot !== true && member && leaks(toMember(member.user.id, member.roles)),
    );
  }

  async function judge(channelId: string, { author, reply }: Actor, signal: AbortSignal): Promise<boolean> {
    const isReadAlone = reply.workspaceId === undefined || reply.visibleTo !== undefined;
    const isHere = channelId === reply.channelId || channelId === reply.threadId;
    if (isHere && (!isReadAlone || reply.workspaceId === undefined)) return true;
    const source = await findOwner(channelId, signal);
    if (source === undefined) return false;
    const { guild_id: guildId } = source.place;
    if (!isReadAlone && reply.workspaceId !== guildId) return false;
    if (isThread(source.place) && !OPEN_THREADS.has(source.place.type)) {
      const isIn = isReadAlone && (await find(Routes.threadMembers(channelId, author.id), signal)) !== undefined;
      if (!isIn) return false;
    }
    const [guild, member, room] = await Promise.all([
      find<APIGuild>(Routes.guild(guildId), signal),
      find<APIGuildMember>(Routes.guildMember(guildId, author.id), signal),
      isReadAlone ? undefined : findOwner(reply.channelId, signal),
    ]);
    if (guild === undefined || member === undefined) return false;
    const asker = { id: author.id, guildId, ownerId: guild.owner_id, roleIds: member.roles };
    if (!may(asker, guild, overwritesOf(source.owner), TO_READ)) return false;
    return isReadAlone || (room !== undefined && (await isReadByAll(source.owner, room.owner, guild, signal)));
  }

  return async (id, to, signal) => {
    const [, channelId] = /^discord:(\d+)(?::|$)/.exec(id) ?? [];
    try {
      return channelId !== undefined && (await judge(channelId, to, signal));
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ApiError) return false;
      throw error;
    }
  };
}

/** Implements `Adapter.isThere`. In a direct conversation, it is enough that the bot can see the channel. */
export function createIsThere({ api }: { api: Pick<Api, "call"> }): NonNullable<Adapter["isThere"]> {
  async function find<T>(route: RouteLike, signal: AbortSignal): Promise<T | undefined> {
    try {
      return await readPatiently<T>(api, route, signal);
    } catch (error) {
      // The user has left, or the bot has lost access to the channel.
      if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return undefined;
      throw error;
    }
  }

  return async (userId, { workspaceId, channelId }, signal) => {
    const channel = await find<APIChannel>(Routes.channel(channelId), signal);
    if (workspaceId === undefined || channel === undefined) return channel !== undefined;
    const [guild, member] = await Promise.all([
      find<APIGuild>(Routes.guild(workspaceId), signal),
      find<APIGuildMember>(Routes.guildMember(workspaceId, userId), signal),
    ]);
    if (guild === undefined || member === undefined) return false;
    const who = { id: userId, guildId: workspaceId, ownerId: guild.owner_id, roleIds: member.roles };
    return may(who, guild, overwritesOf(channel), TO_READ);
  };
}

type OfGuild = APIChannel & { guild_id: string };

function isOfGuild(channel: APIChannel | undefined): channel is OfGuild {
  return channel !== undefined && "guild_id" in channel && channel.guild_id !== undefined;
}

function isThread({ type }: APIChannel): boolean {
  return type >= ChannelType.AnnouncementThread && type <= ChannelType.PrivateThread;
}

function overwritesOf(channel: APIChannel): readonly APIOverwrite[] {
  return "permission_overwrites" in channel ? (channel.permission_overwrites ?? []) : [];
}

function may(member: Member, { roles }: APIGuild, overwrites: readonly APIOverwrite[], needed: bigint): boolean {
  const bits = channelPermissions(guildPermissions(member, roles), member, overwrites);
  // Without View Channel, other permissions have no effect.
  return (bits & (needed | ViewChannel)) === (needed | ViewChannel);
}

/**
 * The sets of roles that `isReadByAll` must test. If no member with one of these sets can see the room without reading
 * the source, no member with other roles can. Sets of two are enough: one role that opens the room and one that closes
 * the source. A third role can only open more.
 */
function toRoleSets({ id, roles }: APIGuild, ...overwrites: ReadonlyArray<readonly APIOverwrite[]>): string[][] {
  const kinds = new Map<string, string>();
  for (const role of roles) {
    // Skips the role of a bot, because no other member has it.
    if (role.id === id || role.tags?.bot_id !== undefined) continue;
    const own = overwrites.map((all) => all.find((one) => one.id === role.id));
    const decides = [role.permissions, ...own.flatMap((one) => [one?.allow ?? "0", one?.deny ?? "0"])];
    kinds.set(decides.map((bits) => BigInt(bits) & (TO_READ | PermissionFlagsBits.Administrator)).join(" "), role.id);
  }
  const ids = [...kinds.values()];
  return [
    [],
    ...ids.map((one) => [one]),
    ...ids.flatMap((one, index) => ids.slice(index + 1).map((other) => [one, other])),
  ];
}
