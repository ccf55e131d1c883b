import {
  type APIChannel,
  type APIGuild,
  type APIRole,
  type APIThreadChannel,
  type RouteLike,
  Routes,
} from "discord.js";
import type { Adapter } from "../../../src/port/adapter.ts";
import { type Api, read } from "./client.ts";
import type { Rooms } from "./rooms.ts";

const MAX_CHANNELS = 5;
const ROLE = /<@&\d{17,20}>/;
const CHANNEL = /<#(\d{17,20})>/g;

export type NamedRooms = Pick<Rooms, "botRoleId" | "guildIdOf" | "nameOfChannel" | "nameOfRole">;

/** Looks up mentioned names for a process without a gateway connection. A name that Discord omits stays an id. */
export async function askNames(
  api: Api,
  { guildId, botId, texts }: { guildId: string | undefined; botId: string; texts: readonly string[] },
  signal: AbortSignal,
): Promise<NamedRooms> {
  const find = <T>(route: RouteLike): Promise<T | undefined> =>
    read<T>(api, route, signal).catch(() => {
      signal.throwIfAborted();
      return undefined;
    });
  const mentioned = texts.flatMap((text) => [...text.matchAll(CHANNEL)].map(([, id = ""]) => id));
  const ids = [...new Set(mentioned)].slice(0, MAX_CHANNELS);
  const hasRoles = guildId !== undefined && texts.some((text) => ROLE.test(text));
  const [roles = [], ...channels] = await Promise.all([
    hasRoles ? find<APIRole[]>(Routes.guildRoles(guildId)) : undefined,
    ...ids.map((id) => find<APIChannel>(Routes.channel(id))),
  ]);
  const names = new Map(channels.map((channel, index) => [ids[index], channel?.name ?? undefined]));

  return {
    guildIdOf: () => guildId,
    botRoleId: () => roles.find(({ tags }) => tags?.bot_id === botId)?.id,
    nameOfRole: (_, roleId) => roles.find(({ id }) => id === roleId)?.name,
    nameOfChannel: (id) => names.get(id),
  };
}

/** A thread gets its channel's name, because its own name may quote the question. */
export function createNamePlace(api: Api): NonNullable<Adapter["namePlace"]> {
  return async ({ channelId, workspaceId }, signal) => {
    if (workspaceId === undefined || workspaceId === "") return { channel: "direct message", isDirect: true };
    const [guild, found] = await Promise.all([
      read<APIGuild>(api, Routes.guild(workspaceId), signal),
      read<APIChannel>(api, Routes.channel(channelId), signal),
    ]);
    const parentId = isThread(found) ? found.parent_id : undefined;
    const channel = parentId ? await read<APIChannel>(api, Routes.channel(parentId), signal) : found;
    return { workspace: guild.name, channel: channel.name ? `#${channel.name}` : undefined };
  };
}

function isThread(channel: APIChannel): channel is APIThreadChannel {
  return "thread_metadata" in channel;
}
