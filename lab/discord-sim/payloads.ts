import type { Channel, ChannelKind, Guild, Member, Payload, Role, User, World } from "./world.ts";

const CHANNEL_TYPES: Readonly<Record<ChannelKind, number>> = {
  text: 0,
  dm: 1,
  announcement: 5,
  "public-thread": 11,
  "private-thread": 12,
  forum: 15,
};
const LONG_AGO = "2020-01-01T00:00:00.000000+00:00";
const NO_GUILD_FEATURES = {
  icon: null,
  splash: null,
  discovery_splash: null,
  banner: null,
  description: null,
  vanity_url_code: null,
  afk_channel_id: null,
  afk_timeout: 300,
  system_channel_id: null,
  system_channel_flags: 0,
  rules_channel_id: null,
  public_updates_channel_id: null,
  safety_alerts_channel_id: null,
  application_id: null,
  verification_level: 0,
  default_message_notifications: 0,
  explicit_content_filter: 0,
  mfa_level: 0,
  nsfw_level: 0,
  premium_progress_bar_enabled: false,
  preferred_locale: "en-US",
  features: [],
  emojis: [],
  stickers: [],
};

export function toUser(user: User): Payload {
  return {
    id: user.id,
    username: user.name,
    global_name: user.isBot ? null : user.name,
    discriminator: "0",
    avatar: null,
    bot: user.isBot,
    public_flags: 0,
  };
}

/** Formats a member for a message, without the user. */
export function toMember(member: Member): Payload {
  return {
    nick: member.nick ?? null,
    avatar: null,
    roles: [...member.roleIds],
    joined_at: LONG_AGO,
    premium_since: null,
    deaf: false,
    mute: false,
    flags: 0,
    pending: false,
  };
}

export function toRole(role: Role, guild: Guild): Payload {
  return {
    id: role.id,
    name: role.name,
    color: 0,
    colors: { primary_color: 0, secondary_color: null, tertiary_color: null },
    hoist: false,
    icon: null,
    unicode_emoji: null,
    position: [...guild.roles.keys()].indexOf(role.id),
    permissions: role.permissions.toString(),
    managed: role.botId !== undefined,
    mentionable: role.isMentionable,
    flags: 0,
    ...(role.botId === undefined ? {} : { tags: { bot_id: role.botId } }),
  };
}

export function channelType(channel: Channel): number {
  return CHANNEL_TYPES[channel.kind];
}

export function toChannel(channel: Channel, world: World): Payload {
  const common = { id: channel.id, type: channelType(channel), last_message_id: channel.lastMessageId, flags: 0 };
  if (channel.kind === "dm") {
    return { ...common, recipients: channel.recipient === undefined ? [] : [toUser(channel.recipient)] };
  }
  const inGuild = {
    ...common,
    guild_id: channel.guildId,
    name: channel.name,
    parent_id: channel.parentId ?? null,
    rate_limit_per_user: channel.slowmodeSeconds,
  };
  if (channel.thread !== undefined) return { ...inGuild, ...threadFields(channel, world) };
  return {
    ...inGuild,
    position: 0,
    topic: null,
    nsfw: false,
    permission_overwrites: [...channel.overwrites].map(([id, { target, allow, deny }]) => ({
      id,
      type: target === "role" ? 0 : 1,
      allow: allow.toString(),
      deny: deny.toString(),
    })),
    ...(channel.kind === "forum" ? { available_tags: [], default_reaction_emoji: null, default_sort_order: null } : {}),
  };
}

function threadFields(channel: Channel, world: World): Payload {
  const { thread, messages } = channel;
  if (thread === undefined) return {};
  return {
    owner_id: channel.ownerId,
    message_count: messages.size,
    total_message_sent: messages.size,
    member_count: thread.memberIds.size,
    thread_metadata: {
      archived: thread.isArchived,
      locked: thread.isLocked,
      auto_archive_duration: thread.autoArchiveMinutes,
      archive_timestamp: LONG_AGO,
      create_timestamp: LONG_AGO,
      ...(channel.kind === "private-thread" ? { invitable: true } : {}),
    },
    ...(thread.memberIds.has(world.bot.id) ? { member: toThreadMember(channel.id, world.bot.id) } : {}),
  };
}

export function toThreadMember(threadId: string, userId: string): Payload {
  return { id: threadId, user_id: userId, join_timestamp: LONG_AGO, flags: 0 };
}

/** Formats a guild as in a GET response. */
export function toGuild(guild: Guild): Payload {
  const roles = [...guild.roles.values()].map((role) => toRole(role, guild));
  const { id, name, ownerId, premiumTier } = guild;
  return { id, name, owner_id: ownerId, premium_tier: premiumTier, ...NO_GUILD_FEATURES, roles };
}

/** Formats the gateway's event for a guild that becomes available, with its channels and threads. */
export function toGuildCreate(guild: Guild, world: World): Payload {
  const own = [...world.channels.values()].filter(({ guildId }) => guildId === guild.id);
  const bot = guild.members.get(world.bot.id);
  const threads = own.filter((channel) => channel.thread?.isArchived === false && world.canSee(world.bot.id, channel));
  return {
    ...toGuild(guild),
    joined_at: LONG_AGO,
    large: false,
    unavailable: false,
    member_count: guild.members.size,
    members: bot === undefined ? [] : [{ ...toMember(bot), user: toUser(bot.user) }],
    channels: own.filter(({ thread }) => thread === undefined).map((channel) => toChannel(channel, world)),
    threads: threads.map((channel) => toChannel(channel, world)),
    presences: [],
    voice_states: [],
    stage_instances: [],
    guild_scheduled_events: [],
    soundboard_sounds: [],
  };
}
