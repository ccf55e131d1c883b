import { type APIGuildMember, type APIUser, Routes } from "discord.js";
import { untilAborted } from "../../../src/concurrency/deadlines.ts";
import { createKeyedQueue } from "../../../src/concurrency/keyed-queue.ts";
import { createLookupCache } from "../../../src/concurrency/lookup-cache.ts";
import type { Adapter } from "../../../src/port/adapter.ts";
import type { Accept, Author } from "../../../src/port/events.ts";
import { type Api, readPatiently } from "../api/client.ts";
import { ApiError } from "../api/error.ts";
import type { Rooms } from "../api/rooms.ts";
import type { DiscordAdapterOptions } from "../options.ts";
import type { Message } from "./wording.ts";

export function toAuthor(
  { id, username, global_name }: APIUser,
  member: { nick?: string | null | undefined; roles?: readonly string[] } | null | undefined,
): Author {
  const groups = member?.roles ?? [];
  return { id, name: member?.nick ?? global_name ?? username, ...(groups.length > 0 && { groups: [...groups] }) };
}

export function mayConfigure({ channel_id, author, member }: Message, rooms: Rooms): boolean {
  return rooms.mayManage(channel_id, author.id, member?.roles ?? []);
}

/** Reads a member. Waits first if the rate limit for that is used up. Rejects in the same cases as `Api.call`. */
export type ReadMember = (guildId: string, userId: string, signal: AbortSignal) => Promise<APIGuildMember>;

/** Reads one member of a server at a time, because each response says how many reads are left. */
export function createReadMember(api: Pick<Api, "call">): ReadMember {
  const { run } = createKeyedQueue();
  return (guildId, userId, signal) => {
    const read = () => readPatiently<APIGuildMember>(api, Routes.guildMember(guildId, userId), signal);
    return untilAborted(run(guildId, read), signal);
  };
}

/**
 * Finds a member with their roles. In a direct conversation, only the id and the roles from `rolesOf` are known. Rejects
 * if Discord does not answer.
 */
export function createFindAuthor(
  readMember: ReadMember,
  roomsOf: (guildId: string) => Rooms | undefined,
  rolesOf: DirectRoles,
): NonNullable<Adapter["findAuthor"]> {
  return async (userId, { workspaceId, channelId }, signal) => {
    if (workspaceId === undefined) {
      const groups = await rolesOf(userId, (guildId) => readRoles(readMember, guildId, userId, signal));
      return { id: userId, name: userId, groups };
    }
    if (!/^\d{17,20}$/.test(userId)) return undefined;
    try {
      const member = await readMember(workspaceId, userId, signal);
      const mayConfigure = roomsOf(workspaceId)?.mayManage(channelId, userId, member.roles) === true;
      const kind = member.user.bot === true ? { kind: "bot" as const } : {};
      return { ...toAuthor(member.user, member), ...kind, mayConfigure };
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  };
}

/** Resolves to no roles if the user is not a member. Otherwise like `readMember`. */
async function readRoles(
  readMember: ReadMember,
  guildId: string,
  userId: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  try {
    return (await readMember(guildId, userId, signal)).roles;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return [];
    throw error;
  }
}

/** Resolves to a user's roles and name on a server; undefined if Discord does not return them. Never rejects. */
export type FindMember = (guildId: string, userId: string) => Promise<APIGuildMember | undefined>;

const FIND_MS = 10_000;
/** A look-up is reused for this long, so that messages of one person that are read together share it. */
const FOUND_FRESH_MS = 10_000;

export function createFindMember(
  readMember: ReadMember,
  { closing, now }: { closing: AbortSignal; now(): number },
): FindMember {
  const cache = createLookupCache({ freshMs: FOUND_FRESH_MS, maxEntries: MAX_CACHED, now });
  return (guildId, userId) =>
    cache.get(`${guildId} ${userId}`, () => {
      const bounded = AbortSignal.any([closing, AbortSignal.timeout(FIND_MS)]);
      return readMember(guildId, userId, bounded).catch(() => undefined);
    });
}

/** A removed role still counts until its look-up expires. */
const MAX_CACHED = 1_000;
const FRESH_MS = 5 * 60_000;
const MAX_ROLES = 20;

/**
 * Resolves to a user's roles on any server, limited to those that the policy names. Rejects only if `rolesIn` does. Without
 * `rolesIn`, roles that Discord does not return in time are missing.
 */
export type DirectRoles = (
  userId: string,
  rolesIn?: (guildId: string) => Promise<readonly string[]>,
) => Promise<readonly string[]>;

export interface DirectRolesDeps extends Pick<DiscordAdapterOptions, "namedGroups" | "now"> {
  /** The server that has this role. Undefined if this process knows no such server. */
  guildOfRole(roleId: string): string | undefined;
  findMember: FindMember;
}

/** Looks up roles, because direct messages do not include them. */
export function createDirectRoles({ namedGroups, guildOfRole, findMember, now }: DirectRolesDeps): DirectRoles {
  const cache = createLookupCache({ freshMs: FRESH_MS, maxEntries: MAX_CACHED, now });

  async function findRoles(guildId: string, userId: string): Promise<readonly string[]> {
    const find = async () => (await findMember(guildId, userId))?.roles;
    return (await cache.get(`${guildId} ${userId}`, find)) ?? [];
  }

  return async (userId, rolesIn = (guildId) => findRoles(guildId, userId)) => {
    const named = ((await namedGroups?.()) ?? []).slice(0, MAX_ROLES);
    const guilds = [...new Set(named.flatMap((id) => guildOfRole(id) ?? []))];
    const own = new Set((await Promise.all(guilds.map(rolesIn))).flat());
    return named.filter((id) => own.has(id));
  };
}

export function withDirectRoles(accept: Accept, rolesOf: DirectRoles): Accept {
  return async (event) => {
    if (event.reply.isDirect !== true) return accept(event);
    const groups = await rolesOf(event.author.id);
    return accept(groups.length === 0 ? event : { ...event, author: { ...event.author, groups } });
  };
}
