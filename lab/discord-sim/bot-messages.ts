import type { ReadBody } from "./body.ts";
import { type Interaction, toOrigin } from "./interaction.ts";
import { evaluateMentions, type Notified, toMentions } from "./mentions.ts";
import { type MessageBody, readMessageBody, textOf } from "./message-body.ts";
import { MESSAGE_FLAGS } from "./message-payload.ts";
import { refuse, refuseForm } from "./refusals.ts";
import { fileLimitIn, type Ping, type Simulation } from "./simulation.ts";
import {
  type Attachment,
  type Channel,
  type Message,
  type MessageState,
  type Payload,
  shown,
  type User,
} from "./world.ts";
import { describeDoubleEdit, describeDoublePost, isStaleEdit } from "./writing-rules.ts";

const REPLY = 19;
const EDITABLE_FLAGS = MESSAGE_FLAGS.suppressEmbeds | MESSAGE_FLAGS.isComponentsV2;
const POSTABLE_FLAGS = EDITABLE_FLAGS | MESSAGE_FLAGS.suppressNotifications;

/** The origin of a post that answers an interaction or opens a forum post. */
export interface PostOrigin {
  interaction?: Interaction;
  /** The id of a forum post's first message. */
  id?: string;
}

/** Writes the bot's messages. Checks them as Discord does, and records violations. */
export interface BotMessages {
  /** If a message with this nonce exists, returns it and posts nothing. */
  post(channel: Channel, read: ReadBody, origin?: PostOrigin): Message;
  edit(message: Message, read: ReadBody): void;
}

export function createBotMessages(simulation: Simulation): BotMessages {
  const { clock, world, timeline, violations, files, rules, pings } = simulation;
  const { bot } = world;

  function storeFiles(
    channel: Channel,
    body: MessageBody,
    read: ReadBody,
    { isEphemeral, asker }: { isEphemeral: boolean; asker: User | undefined },
  ): Attachment[] {
    return read.files.map(({ index, name, bytes }) => {
      if (bytes.length > fileLimitIn(simulation, channel, asker)) throw refuse("too-large");
      const described = body.attachments?.find(({ id }) => id === index);
      const description = described?.description ?? undefined;
      return files.store({
        id: world.nextId(),
        channelId: channel.id,
        name: described?.filename ?? name,
        bytes,
        description,
        isEphemeral,
      });
    });
  }

  function resolveReply(channel: Channel, body: MessageBody): Message | undefined {
    const reference = body.message_reference;
    if (!reference) return undefined;
    if (!world.can(bot.id, channel, "ReadMessageHistory")) throw refuse("no-history");
    const original = world.message(reference.channel_id ?? channel.id, reference.message_id);
    if (original !== undefined || reference.fail_if_not_exists === false) return original;
    throw refuseForm({ path: ["message_reference"], code: "REPLIES_UNKNOWN_MESSAGE", message: "Unknown message" });
  }

  function notify(channel: Channel, body: MessageBody, text: string, repliedUserId: string | undefined): Notified {
    const roles = world.guilds.get(channel.guildId ?? "")?.roles;
    const mayMentionEveryone = channel.guildId !== undefined && world.can(bot.id, channel, "MentionEveryone");
    return evaluateMentions(text, {
      allowed: body.allowed_mentions ?? undefined,
      mayMentionRole: (id) =>
        roles?.get(id) !== undefined && (mayMentionEveryone || roles.get(id)?.isMentionable === true),
      mayMentionEveryone,
      isUser: (id) => world.users.has(id),
      repliedUserId,
    });
  }

  function recordPing(message: Message, notified: Notified, by: Ping["by"]): void {
    const { userIds, roleIds, everyone, repliedUserId } = notified;
    const named = [...userIds.map((id) => `user ${id}`), ...roleIds.map((id) => `role ${id}`)];
    if (everyone) named.push("everyone");
    if (named.length > 0) {
      violations.record("ping", `The text of message ${message.id} (${by}) notifies ${named.join(", ")}.`);
    } else if (repliedUserId === undefined) return;
    pings.push({ ...notified, messageId: message.id, channelId: message.channelId, by });
  }

  function post(channel: Channel, read: ReadBody, { interaction, id }: PostOrigin = {}): Message {
    const body = readMessageBody(read.json);
    const nonce = body.nonce ?? undefined;
    const twin = body.enforce_nonce === true && nonce !== undefined ? findByNonce(nonce) : undefined;
    if (twin !== undefined) return twin;
    const content = (body.content ?? "").trim();
    requireSomething(content, body.embeds ?? [], body.components ?? [], read.files);
    const original = resolveReply(channel, body);
    const wanted = body.flags ?? 0;
    const isEphemeral = interaction !== undefined && (wanted & MESSAGE_FLAGS.ephemeral) !== 0;
    const attachments = storeFiles(channel, body, read, { isEphemeral, asker: interaction?.user });
    const notified = notify(channel, body, textOf(body), original?.author.id);
    const double = describeDoublePost(channel, bot.id, {
      content,
      nonce,
      referenceId: original?.id,
      interactionId: interaction?.id,
      attachments,
      components: body.components ?? [],
    });
    if (double !== undefined) violations.record("double-post", `In channel ${channel.id}, ${double}.`);
    const message = timeline.add(channel, {
      author: bot,
      type: interaction?.replyType ?? (body.message_reference ? REPLY : 0),
      mentions: toMentions(notified),
      ...(id === undefined ? {} : { id }),
      ...(nonce === undefined ? {} : { nonce }),
      ...referenceOf(body, channel),
      ...(interaction === undefined ? {} : { webhookId: bot.id, interaction: toOrigin(interaction) }),
      ...(isEphemeral ? { ephemeralFor: interaction.user.id } : {}),
      state: {
        content,
        embeds: body.embeds ?? [],
        components: body.components ?? [],
        attachments,
        flags: (wanted & POSTABLE_FLAGS) | (isEphemeral ? MESSAGE_FLAGS.ephemeral : 0),
      },
    });
    recordPing(message, notified, "post");
    return message;
  }

  function findByNonce(nonce: string | number): Message | undefined {
    const since = clock.now() - rules.nonceMs;
    for (const channel of world.channels.values()) {
      for (const message of channel.messages.values()) {
        const isKnown = message.author === bot && message.nonce === nonce && (message.states[0]?.atMs ?? 0) >= since;
        if (isKnown && message.deletedAtMs === undefined) return message;
      }
    }
    return undefined;
  }

  function edit(message: Message, read: ReadBody): void {
    const body = readMessageBody(read.json);
    const channel = world.channels.get(message.channelId);
    if (channel === undefined) throw refuse("unknown-channel");
    const origin = { isEphemeral: message.ephemeralFor !== undefined, asker: message.interaction?.user };
    const next = toNextState(shown(message), body, storeFiles(channel, body, read, origin));
    requireSomething(next.content, next.embeds, next.components, next.attachments);
    if (isStaleEdit(message, next.content)) {
      const lengths = `${next.content.length} characters over ${shown(message).content.length}`;
      violations.record("stale-edit", `An edit of message ${message.id} brought older text: ${lengths}.`);
    }
    const double = describeDoubleEdit(channel, bot.id, message, next.content);
    if (double !== undefined) violations.record("double-post", `In channel ${channel.id}, ${double}.`);
    const repliedUserId = world.message(message.channelId, message.reference?.messageId ?? "")?.author.id;
    const notified = notify(channel, body, textOf({ content: next.content, components: body.components }), undefined);
    timeline.change(message, next, {
      // The message that replaces "is thinking" does not count as edited.
      isEdit: (shown(message).flags & MESSAGE_FLAGS.loading) === 0,
      mentions: toMentions({
        ...notified,
        repliedUserId: body.allowed_mentions?.replied_user ? repliedUserId : undefined,
      }),
    });
    recordPing(message, notified, "edit");
  }

  return { post, edit };
}

function toNextState(state: MessageState, body: MessageBody, added: Attachment[]): Omit<MessageState, "atMs"> {
  const kept = body.attachments
    ? state.attachments.filter(({ id }) => body.attachments?.some((named) => named.id === id))
    : state.attachments;
  const wanted = body.flags ?? state.flags;
  // An edit can remove neither Components V2 nor flags that the bot cannot set.
  const flags = (state.flags & ~MESSAGE_FLAGS.suppressEmbeds & ~MESSAGE_FLAGS.loading) | (wanted & EDITABLE_FLAGS);
  return {
    content: body.content === undefined ? state.content : (body.content ?? "").trim(),
    embeds: body.embeds === undefined ? state.embeds : (body.embeds ?? []),
    components: body.components === undefined ? state.components : (body.components ?? []),
    attachments: [...kept, ...added],
    flags,
  };
}

function requireSomething(
  content: string,
  embeds: readonly Payload[],
  components: readonly Payload[],
  files: readonly unknown[],
): void {
  if (content === "" && embeds.length + components.length + files.length === 0) throw refuse("empty-message");
}

function referenceOf(body: MessageBody, channel: Channel): Pick<Message, "reference"> {
  const reference = body.message_reference;
  if (!reference) return {};
  return { reference: { messageId: reference.message_id, channelId: reference.channel_id ?? channel.id } };
}
