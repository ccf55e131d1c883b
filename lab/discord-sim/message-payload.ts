import { channelType, toChannel, toMember, toUser } from "./payloads.ts";
import {
  type Attachment,
  type Channel,
  type Message,
  type MessageState,
  type Payload,
  shown,
  type World,
} from "./world.ts";

export const MESSAGE_FLAGS = {
  suppressEmbeds: 1 << 2,
  hasThread: 1 << 5,
  ephemeral: 1 << 6,
  loading: 1 << 7,
  suppressNotifications: 1 << 12,
  isComponentsV2: 1 << 15,
} as const;

const MENTION = /<@!?(\d{17,20})>/g;
const REPLIED = 0;
const FORWARDED = 1;

/** Formats messages in their current state. */
export interface MessagePayloads {
  /**
   * Formats a message for REST responses and interactions. Without `canReadContent`, omits the fields that need the
   * intent.
   */
  toMessage(message: Message, canReadContent: boolean): Payload;
  /** Formats a message for gateway events: adds the guild, the member, the mentioned members and the channel's type. */
  toEvent(message: Message, canReadContent: boolean): Payload;
  toAttachment(attachment: Attachment): Payload;
}

export interface MessagePayloadsDeps {
  world: World;
  linkTo(attachment: Attachment): string;
  /** Discord does not promise the channel's type in events. */
  sendsChannelType: boolean;
}

export function createMessagePayloads({ world, linkTo, sendsChannelType }: MessagePayloadsDeps): MessagePayloads {
  function toAttachment(attachment: Attachment): Payload {
    const url = linkTo(attachment);
    return {
      id: attachment.id,
      filename: attachment.name,
      ...(attachment.title === undefined ? {} : { title: attachment.title }),
      size: attachment.bytes.length,
      url,
      proxy_url: url,
      ...(attachment.contentType === undefined ? {} : { content_type: attachment.contentType }),
      ...(attachment.description === undefined ? {} : { description: attachment.description }),
      ...(attachment.width === undefined ? {} : { width: attachment.width, height: attachment.height }),
      ...(attachment.isEphemeral ? { ephemeral: true } : {}),
    };
  }

  function toSnapshot({ content, embeds, attachments, components, flags, atMs }: MessageState): Payload {
    return {
      type: 0,
      content,
      embeds,
      attachments: attachments.map(toAttachment),
      components,
      flags,
      timestamp: new Date(atMs).toISOString(),
      edited_timestamp: null,
      mentions: [...content.matchAll(MENTION)].flatMap(([, id = ""]) => world.users.get(id) ?? []).map(toUser),
      mention_roles: [],
    };
  }

  function toBase(message: Message, canReadContent: boolean): Payload {
    const state = shown(message);
    const isWithheld = !canReadContent && isForeign(message, world);
    const mentioned = [...message.mentions.userIds].flatMap((id) => world.users.get(id) ?? []);
    const { interaction } = message;
    const thread = message.threadId === undefined ? undefined : world.channels.get(message.threadId);
    return {
      id: message.id,
      channel_id: message.channelId,
      author: toUser(message.author),
      type: message.type,
      content: isWithheld ? "" : state.content,
      embeds: isWithheld ? [] : state.embeds,
      attachments: isWithheld ? [] : state.attachments.map(toAttachment),
      components: isWithheld ? [] : state.components,
      timestamp: new Date(message.states[0]?.atMs ?? state.atMs).toISOString(),
      edited_timestamp: message.editedAtMs === undefined ? null : new Date(message.editedAtMs).toISOString(),
      flags: state.flags,
      mentions: mentioned.map(toUser),
      mention_roles: [...message.mentions.roleIds],
      mention_everyone: message.mentions.everyone,
      pinned: false,
      tts: false,
      ...(message.nonce === undefined ? {} : { nonce: message.nonce }),
      ...(message.webhookId === undefined ? {} : { webhook_id: message.webhookId, application_id: message.webhookId }),
      ...(interaction === undefined
        ? {}
        : {
            interaction_metadata: {
              id: interaction.id,
              type: interaction.type,
              user: toUser(interaction.user),
              authorizing_integration_owners: {},
            },
          }),
      ...(thread === undefined ? {} : { thread: toChannel(thread, world) }),
    };
  }

  function toMessage(message: Message, canReadContent: boolean): Payload {
    const { reference, forwarded } = message;
    if (reference === undefined) return toBase(message, canReadContent);
    const guildId = world.channels.get(reference.channelId)?.guildId;
    const original = world.message(reference.channelId, reference.messageId);
    const message_reference = {
      type: forwarded === undefined ? REPLIED : FORWARDED,
      message_id: reference.messageId,
      channel_id: reference.channelId,
      ...(guildId === undefined ? {} : { guild_id: guildId }),
    };
    if (forwarded !== undefined) {
      const isWithheld = !canReadContent && isForeign(message, world);
      const message_snapshots = isWithheld ? [] : [{ message: toSnapshot(forwarded) }];
      return { ...toBase(message, canReadContent), message_reference, message_snapshots };
    }
    return {
      ...toBase(message, canReadContent),
      message_reference,
      // Only one level: a referenced message does not contain the message that it replied to.
      referenced_message: original === undefined ? null : toBase(original, canReadContent),
    };
  }

  function toEvent(message: Message, canReadContent: boolean): Payload {
    const channel = world.channels.get(message.channelId);
    const payload = { ...toMessage(message, canReadContent), ...(sendsChannelType ? channelFields(channel) : {}) };
    const member = world.guilds.get(channel?.guildId ?? "")?.members.get(message.author.id);
    // Ephemeral messages look like direct messages.
    if (channel?.guildId === undefined || message.ephemeralFor !== undefined) return payload;
    const mentions = (payload["mentions"] as Payload[]).map((user) => {
      const mentioned = world.guilds.get(channel.guildId ?? "")?.members.get(String(user["id"]));
      return mentioned === undefined ? user : { ...user, member: toMember(mentioned) };
    });
    const own = { guild_id: channel.guildId, mentions, ...(member === undefined ? {} : { member: toMember(member) }) };
    return { ...payload, ...own };
  }

  return { toMessage, toEvent, toAttachment };
}

function channelFields(channel: Channel | undefined): Payload {
  return channel === undefined ? {} : { channel_type: channelType(channel) };
}

/** True if the application needs the intent to read the message. */
function isForeign(message: Message, { bot, channels }: World): boolean {
  const isDirect = channels.get(message.channelId)?.kind === "dm";
  return !isDirect && message.author !== bot && !message.mentions.userIds.has(bot.id);
}
