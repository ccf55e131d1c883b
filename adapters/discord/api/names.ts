import { type APIChannel, type APIRole, type RouteLike, Routes } from "discord.js";
import { type Api, read } from "./client.ts";
import type { Rooms } from "./rooms.ts";

/** Calls for the names of channels that one look at a place costs at most. */
const MAX_CHANNELS = 5;
const ROLE = /<@&\d{17,20}>/;
const CHANNEL = /<#(\d{17,20})>/g;

/** The names that are needed to read messages. */
export type NamedRooms = Pick<Rooms, "botRoleId" | "guildIdOf" | "nameOfChannel" | "nameOfRole">;

/**
 * Asks Discord for the names that these texts mention, for a process that does not hear the gateway. Best effort: a name
 * that Discord does not tell stays an id.
 */
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
