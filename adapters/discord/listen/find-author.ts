import { type APIGuildMember, Routes } from "discord.js";
import type { Adapter } from "../../../src/port/adapter.ts";
import { type Api, read } from "../api/client.ts";
import { ApiError } from "../api/error.ts";
import type { Rooms } from "../api/rooms.ts";
import { toAuthor } from "./inbound.ts";

/** Finds a member with their roles. In a direct conversation, only the id and the roles of `rolesOf` are known. */
export function createFindAuthor(
  api: Api,
  roomsOf: (guildId: string) => Rooms | undefined,
  rolesOf: (userId: string) => Promise<readonly string[]>,
): NonNullable<Adapter["findAuthor"]> {
  return async (userId, { workspaceId, channelId }, signal) => {
    if (workspaceId === undefined) return { id: userId, name: userId, groups: await rolesOf(userId) };
    if (!/^\d{17,20}$/.test(userId)) return undefined;
    try {
      const member = await read<APIGuildMember>(api, Routes.guildMember(workspaceId, userId), signal);
      const mayConfigure = roomsOf(workspaceId)?.mayManage(channelId, userId, member.roles) === true;
      const kind = member.user.bot === true ? { kind: "bot" as const } : {};
      return { ...toAuthor(member.user, member), ...kind, mayConfigure };
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  };
}

/** Resolves to the roles and the name that somebody has on a server; undefined where Discord does not tell. Never rejects. */
export type FindMember = (guildId: string, userId: string) => Promise<APIGuildMember | undefined>;

export function createFindMember(api: Api, closing: AbortSignal): FindMember {
  return (guildId, userId) =>
    read<APIGuildMember>(api, Routes.guildMember(guildId, userId), closing).catch(() => undefined);
}
