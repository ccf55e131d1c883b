import type { Clock } from "./clock.ts";
import { ALL_PERMISSIONS, computePermissions, hasPermission, type PermissionName } from "./permissions.ts";
import { createSnowflakes } from "./snowflakes.ts";

export type Payload = Record<string, unknown>;

export interface User {
  readonly id: string;
  name: string;
  isBot: boolean;
  /** True if the user accepts direct messages from others. */
  acceptsDms: boolean;
  /** The largest file in bytes that the user's Nitro allows; absent without Nitro. */
  nitroBytes?: number;
}

export interface Role {
  readonly id: string;
  name: string;
  permissions: bigint;
  isMentionable: boolean;
  /** The bot that a managed role belongs to. */
  botId?: string;
}

export interface Member {
  readonly user: User;
  readonly roleIds: Set<string>;
  nick?: string;
}

export interface Guild {
  readonly id: string;
  name: string;
  ownerId: string;
  /** The server's boost level, 0 to 3. */
  readonly premiumTier: number;
  readonly roles: Map<string, Role>;
  readonly members: Map<string, Member>;
}

export type ChannelKind = "text" | "announcement" | "forum" | "dm" | "public-thread" | "private-thread";

export interface Overwrite {
  target: "role" | "member";
  allow: bigint;
  deny: bigint;
}

export interface ThreadState {
  isArchived: boolean;
  isLocked: boolean;
  autoArchiveMinutes: number;
  readonly memberIds: Set<string>;
}

export interface Channel {
  readonly id: string;
  readonly kind: ChannelKind;
  readonly guildId: string | undefined;
  name: string;
  readonly parentId?: string;
  readonly ownerId?: string;
  /** The other person in a direct conversation. */
  readonly recipient?: User;
  readonly overwrites: Map<string, Overwrite>;
  readonly thread?: ThreadState;
  slowmodeSeconds: number;
  lastMessageId: string | null;
  /** Oldest first, including deleted messages. */
  readonly messages: Map<string, Message>;
}

export interface Attachment {
  readonly id: string;
  readonly name: string;
  /** The file's original name without extension, if the link cannot contain that name. */
  readonly title: string | undefined;
  readonly bytes: Uint8Array;
  readonly contentType: string | undefined;
  readonly description: string | undefined;
  readonly width?: number;
  readonly height?: number;
  /** The path on the CDN, without host and signature. */
  readonly path: string;
  readonly isEphemeral: boolean;
}

/** A message's content since `atMs`. */
export interface MessageState {
  readonly content: string;
  readonly embeds: readonly Payload[];
  readonly components: readonly Payload[];
  readonly attachments: readonly Attachment[];
  readonly flags: number;
  readonly atMs: number;
}

export interface Mentions {
  readonly userIds: ReadonlySet<string>;
  readonly roleIds: ReadonlySet<string>;
  readonly everyone: boolean;
}

export interface Message {
  readonly id: string;
  readonly channelId: string;
  readonly author: User;
  readonly type: number;
  /** All versions of the content, oldest first. The message shows the last one. */
  readonly states: MessageState[];
  mentions: Mentions;
  /** Ids of the users who reacted, by emoji. */
  readonly reactions: Map<string, Set<string>>;
  readonly reference?: { messageId: string; channelId: string };
  /** The content of another message that this message forwarded. `reference` identifies the other message. */
  readonly forwarded?: MessageState;
  readonly nonce?: string | number;
  readonly webhookId?: string;
  /** The interaction whose token was used to write the message. */
  readonly interaction?: { id: string; type: number; user: User };
  /** The only user who sees the message. */
  readonly ephemeralFor?: string;
  editedAtMs?: number;
  deletedAtMs?: number;
  threadId?: string;
}

export interface World {
  readonly bot: User;
  readonly users: Map<string, User>;
  readonly guilds: Map<string, Guild>;
  readonly channels: Map<string, Channel>;
  nextId(): string;
  /**
   * Returns the user's permissions: all in their own direct conversation, otherwise those from roles and overwrites.
   */
  permissionsIn(channel: Channel, userId: string): bigint;
  can(userId: string, channel: Channel, permission: PermissionName): boolean;
  canSee(userId: string, channel: Channel): boolean;
  /** Finds a message that is not deleted. */
  message(channelId: string, messageId: string): Message | undefined;
}

export function shown(message: Message): MessageState {
  const state = message.states.at(-1);
  if (state === undefined) throw new Error(`Message ${message.id} has no state.`);
  return state;
}

export function createWorld(clock: Clock): World {
  const nextId = createSnowflakes(clock);
  const bot: User = { id: nextId(), name: "palaver", isBot: true, acceptsDms: false };
  const users = new Map([[bot.id, bot]]);
  const guilds = new Map<string, Guild>();
  const channels = new Map<string, Channel>();

  function permissionsIn(channel: Channel, userId: string): bigint {
    const guild = channel.guildId === undefined ? undefined : guilds.get(channel.guildId);
    if (guild === undefined) return channel.recipient?.id === userId || userId === bot.id ? ALL_PERMISSIONS : 0n;
    const parent = channel.thread === undefined ? channel : channels.get(channel.parentId ?? "");
    const bits = computePermissions(guild, userId, parent);
    const isHidden = channel.kind === "private-thread" && channel.thread?.memberIds.has(userId) !== true;
    return isHidden && !hasPermission(bits, "ManageThreads") ? 0n : bits;
  }

  return {
    bot,
    users,
    guilds,
    channels,
    nextId,
    permissionsIn,
    can: (userId, channel, permission) => hasPermission(permissionsIn(channel, userId), permission),
    canSee: (userId, channel) => hasPermission(permissionsIn(channel, userId), "ViewChannel"),
    message(channelId, messageId) {
      const message = channels.get(channelId)?.messages.get(messageId);
      return message?.deletedAtMs === undefined ? message : undefined;
    },
  };
}
