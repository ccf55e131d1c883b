import { toChannel, toGuildCreate, toRole } from "./payloads.ts";
import { EVERYONE, type PermissionName, toBits } from "./permissions.ts";
import { INTENTS } from "./sessions.ts";
import type { Simulation } from "./simulation.ts";
import type { Channel, Guild, Role, User } from "./world.ts";

export interface GuildOptions {
  name?: string;
  everyone?: readonly PermissionName[];
  /** Further permissions of the bot's own role. */
  bot?: readonly PermissionName[];
  /** False if no one has added the bot. */
  hasBot?: boolean;
  /** The server's boost level, 0 to 3; default: 0. */
  premiumTier?: number;
}

/** Permissions of a role, a user or the bot, by id. The guild's own id stands for @everyone. */
export interface OverwriteOptions {
  allow?: readonly PermissionName[];
  deny?: readonly PermissionName[];
}

export interface ChannelOptions {
  kind?: "text" | "announcement" | "forum";
  overwrites?: Readonly<Record<string, OverwriteOptions>>;
  slowmodeSeconds?: number;
}

/** Creates channels, servers and users, and sends the events to connected sessions. */
export interface Builders {
  addGuild(options?: GuildOptions): Guild;
  addRole(guild: Guild, name: string, permissions?: readonly PermissionName[], isMentionable?: boolean): Role;
  /** Creates a user in these guilds. */
  addUser(name: string, ...guilds: Guild[]): User;
  /** Creates another bot in these guilds. */
  addBot(name: string, ...guilds: Guild[]): User;
  giveRole(guild: Guild, user: User, role: Role): void;
  addChannel(guild: Guild, name: string, options?: ChannelOptions): Channel;
  /** Changes the permissions of a role, a user or the bot in a channel. */
  overwrite(channel: Channel, id: string, options: OverwriteOptions): void;
  removeChannel(channel: Channel): void;
  kickBot(guild: Guild): void;
  /** Returns the direct conversation between a user and the bot, always the same one. */
  openDm(user: User): Channel;
}

export function createBuilders({ world, deliver }: Simulation): Builders {
  const { bot } = world;

  function tell(type: string, guild: Guild, payload: () => Record<string, unknown>): void {
    if (guild.members.has(bot.id)) deliver({ type, guildId: guild.id, intent: INTENTS.guilds, payload });
  }

  function addPerson(name: string, isBot: boolean, guilds: readonly Guild[]): User {
    const user: User = { id: world.nextId(), name, isBot, acceptsDms: !isBot };
    world.users.set(user.id, user);
    for (const guild of guilds) guild.members.set(user.id, { user, roleIds: new Set() });
    return user;
  }

  function setOverwrite(channel: Channel, id: string, { allow = [], deny = [] }: OverwriteOptions): void {
    const target = world.users.has(id) ? "member" : "role";
    channel.overwrites.set(id, { target, allow: toBits(allow), deny: toBits(deny) });
  }

  return {
    addGuild({ name = "Guild", everyone = EVERYONE, bot: botPermissions = [], hasBot = true, premiumTier = 0 } = {}) {
      const id = world.nextId();
      const owner: User = { id: world.nextId(), name: "owner", isBot: false, acceptsDms: true };
      const guild: Guild = { id, name, ownerId: owner.id, premiumTier, roles: new Map(), members: new Map() };
      world.users.set(owner.id, owner);
      guild.members.set(owner.id, { user: owner, roleIds: new Set() });
      guild.roles.set(id, { id, name: "@everyone", permissions: toBits(everyone), isMentionable: false });
      if (hasBot) {
        const role: Role = {
          id: world.nextId(),
          name: bot.name,
          permissions: toBits(botPermissions),
          isMentionable: false,
          botId: bot.id,
        };
        guild.roles.set(role.id, role);
        guild.members.set(bot.id, { user: bot, roleIds: new Set([role.id]) });
      }
      world.guilds.set(id, guild);
      tell("GUILD_CREATE", guild, () => toGuildCreate(guild, world));
      return guild;
    },
    addRole(guild, name, permissions = [], isMentionable = false) {
      const role: Role = { id: world.nextId(), name, permissions: toBits(permissions), isMentionable };
      guild.roles.set(role.id, role);
      tell("GUILD_ROLE_CREATE", guild, () => ({ guild_id: guild.id, role: toRole(role, guild) }));
      return role;
    },
    addUser: (name, ...guilds) => addPerson(name, false, guilds),
    addBot: (name, ...guilds) => addPerson(name, true, guilds),
    giveRole(guild, user, role) {
      const member = guild.members.get(user.id);
      if (member === undefined) throw new Error(`${user.name} is not a member of ${guild.name}.`);
      member.roleIds.add(role.id);
    },
    addChannel(guild, name, { kind = "text", overwrites = {}, slowmodeSeconds = 0 } = {}) {
      const channel: Channel = {
        id: world.nextId(),
        kind,
        guildId: guild.id,
        name,
        overwrites: new Map(),
        slowmodeSeconds,
        lastMessageId: null,
        messages: new Map(),
      };
      for (const [id, options] of Object.entries(overwrites)) setOverwrite(channel, id, options);
      world.channels.set(channel.id, channel);
      tell("CHANNEL_CREATE", guild, () => toChannel(channel, world));
      return channel;
    },
    overwrite(channel, id, options) {
      setOverwrite(channel, id, options);
      const guild = world.guilds.get(channel.guildId ?? "");
      if (guild !== undefined) tell("CHANNEL_UPDATE", guild, () => toChannel(channel, world));
    },
    removeChannel(channel) {
      const guild = world.guilds.get(channel.guildId ?? "");
      const payload = toChannel(channel, world);
      world.channels.delete(channel.id);
      const type = channel.thread === undefined ? "CHANNEL_DELETE" : "THREAD_DELETE";
      if (guild !== undefined) tell(type, guild, () => payload);
    },
    kickBot(guild) {
      tell("GUILD_DELETE", guild, () => ({ id: guild.id }));
      guild.members.delete(bot.id);
    },
    openDm(user) {
      const open = [...world.channels.values()].find(({ recipient }) => recipient === user);
      if (open !== undefined) return open;
      const channel: Channel = {
        id: world.nextId(),
        kind: "dm",
        guildId: undefined,
        name: user.name,
        recipient: user,
        overwrites: new Map(),
        slowmodeSeconds: 0,
        lastMessageId: null,
        messages: new Map(),
      };
      world.channels.set(channel.id, channel);
      return channel;
    },
  };
}
