import {
  type ChannelType,
  GatewayDispatchEvents,
  type GatewayDispatchPayload,
  type GuildPremiumTier,
} from "discord.js";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import type { Overwrite } from "./permissions.ts";

/** Maximum number of archived threads to remember, across all servers. Discord sets no limit. */
const MAX_ARCHIVED = 1_000;

export interface Server {
  id: string;
  ownerId: string | undefined;
  premiumTier: GuildPremiumTier | undefined;
  roles: Map<string, KnownRole>;
  /** The bot's membership. Undefined if the event does not contain it. */
  bot: { roleIds: readonly string[]; timedOutUntil: string | undefined } | undefined;
}

interface KnownRole {
  id: string;
  name: string;
  /** Undefined if a server that imitates Discord omits it. */
  permissions: string | undefined;
  botId: string | undefined;
}

export interface Place {
  id: string;
  server: Server;
  type: ChannelType | undefined;
  name: string | undefined;
  parentId: string | undefined;
  overwrites: readonly Overwrite[];
  lastMessageId: string | undefined;
}

/** The fields of events that the bot reads. Servers that imitate Discord can omit some. */
interface ShownPlace {
  id: string;
  type?: ChannelType;
  name?: string | null;
  parent_id?: string | null;
  permission_overwrites?: readonly Overwrite[];
  last_message_id?: string | null;
  thread_metadata?: { archived?: boolean };
}

interface ShownRole {
  id: string;
  name: string;
  permissions?: string;
  tags?: { bot_id?: string };
}

interface ShownMember {
  user: { id: string };
  roles?: readonly string[];
  communication_disabled_until?: string | null;
}

interface ShownServer {
  id: string;
  owner_id?: string;
  premium_tier?: GuildPremiumTier;
  roles?: readonly ShownRole[];
  members?: readonly ShownMember[];
  channels?: readonly ShownPlace[];
  threads?: readonly ShownPlace[];
}

export interface Servers {
  see(packet: GatewayDispatchPayload): void;
  botId(): string | undefined;
  find(guildId: string | undefined): Server | undefined;
  all(): IteratorObject<Server>;
  findPlace(id: string | undefined): Place | undefined;
  /** Leaves out archived threads. */
  places(): IteratorObject<Place>;
}

type Takers = {
  [E in GatewayDispatchEvents]?: (data: Extract<GatewayDispatchPayload, { t: E }>["d"]) => void;
};

export function createServers(): Servers {
  const servers = new Map<string, Server>();
  const places = new Map<string, Place>();
  const archived = new BoundedMap<string, Place>(MAX_ARCHIVED);
  let botId: string | undefined;

  const find = (id: string | undefined) => servers.get(id ?? "");
  const findPlace = (id: string | undefined) => places.get(id ?? "") ?? archived.get(id ?? "");

  function forget(guildId: string): void {
    servers.delete(guildId);
    for (const known of [places, archived]) {
      for (const [id, { server }] of known) if (server.id === guildId) known.delete(id);
    }
  }

  function setPlace(shown: ShownPlace, guildId: string | undefined): void {
    const server = find(guildId);
    if (server === undefined) return;
    const before = findPlace(shown.id);
    const { id, type = before?.type, parent_id = before?.parentId, last_message_id = before?.lastMessageId } = shown;
    const overwrites = shown.permission_overwrites ?? before?.overwrites ?? [];
    const [parentId, lastMessageId] = [parent_id ?? undefined, last_message_id ?? undefined];
    removePlace(shown);
    const known = shown.thread_metadata?.archived === true ? archived : places;
    known.set(id, { id, server, type, name: shown.name ?? before?.name, parentId, overwrites, lastMessageId });
  }

  function removePlace({ id }: ShownPlace): void {
    places.delete(id);
    archived.delete(id);
  }

  function setBot(server: Server | undefined, { user, roles = [], ...member }: ShownMember): void {
    if (server === undefined || user.id !== botId) return;
    server.bot = { roleIds: roles, timedOutUntil: member.communication_disabled_until ?? undefined };
  }

  function setServer({ id, roles = [], members = [], channels = [], threads = [], ...shown }: ShownServer): void {
    if (servers.has(id)) forget(id);
    const { owner_id: ownerId, premium_tier: premiumTier } = shown;
    const server: Server = { id, ownerId, premiumTier, roles: toRoles(roles), bot: undefined };
    servers.set(id, server);
    for (const member of members) setBot(server, member);
    for (const place of [...channels, ...threads]) setPlace(place, id);
  }

  function changeServer({ id, owner_id: ownerId, premium_tier: premiumTier, roles }: ShownServer): void {
    const server = find(id);
    if (server === undefined) return;
    server.ownerId = ownerId ?? server.ownerId;
    server.premiumTier = premiumTier ?? server.premiumTier;
    server.roles = roles === undefined ? server.roles : toRoles(roles);
  }

  const setRole = ({ guild_id, role }: { guild_id: string; role: ShownRole }) =>
    void find(guild_id)?.roles.set(role.id, toRole(role));
  const setOwnPlace = (shown: ShownPlace & { guild_id?: string }) => setPlace(shown, shown.guild_id);

  const takers: Takers = {
    [GatewayDispatchEvents.Ready]({ user, guilds }) {
      botId = user.id;
      const listed = new Set(guilds.map(({ id }) => id));
      for (const id of servers.keys()) if (!listed.has(id)) forget(id);
    },
    [GatewayDispatchEvents.GuildCreate]: (shown) => shown.unavailable === true || setServer(shown),
    [GatewayDispatchEvents.GuildUpdate]: changeServer,
    // Keeps a server that is only unavailable, because the bot is still its member.
    [GatewayDispatchEvents.GuildDelete]: ({ id, unavailable }) => unavailable === true || forget(id),
    [GatewayDispatchEvents.GuildMemberUpdate]: (member) => setBot(find(member.guild_id), member),
    [GatewayDispatchEvents.GuildRoleCreate]: setRole,
    [GatewayDispatchEvents.GuildRoleUpdate]: setRole,
    [GatewayDispatchEvents.GuildRoleDelete]: ({ guild_id, role_id }) => void find(guild_id)?.roles.delete(role_id),
    [GatewayDispatchEvents.ChannelCreate]: setOwnPlace,
    [GatewayDispatchEvents.ChannelUpdate]: setOwnPlace,
    [GatewayDispatchEvents.ChannelDelete]: removePlace,
    [GatewayDispatchEvents.ThreadCreate]: setOwnPlace,
    [GatewayDispatchEvents.ThreadUpdate]: setOwnPlace,
    [GatewayDispatchEvents.ThreadDelete]: removePlace,
    [GatewayDispatchEvents.ThreadListSync]({ guild_id, threads }) {
      for (const thread of threads) setPlace(thread, guild_id);
    },
  };

  return {
    see: ({ t: type, d: data }) => (takers[type] as ((data: unknown) => void) | undefined)?.(data),
    botId: () => botId,
    find,
    all: () => servers.values(),
    findPlace,
    places: () => places.values(),
  };
}

function toRoles(roles: readonly ShownRole[]): Map<string, KnownRole> {
  return new Map(roles.map((role) => [role.id, toRole(role)]));
}

function toRole({ id, name, permissions, tags }: ShownRole): KnownRole {
  return { id, name, permissions, botId: tags?.bot_id };
}
