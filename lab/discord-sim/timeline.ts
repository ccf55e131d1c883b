import type { Changes } from "../support/changes.ts";
import type { Clock } from "./clock.ts";
import type { MessagePayloads } from "./message-payload.ts";
import { toChannel } from "./payloads.ts";
import { type GatewayEvent, INTENTS } from "./sessions.ts";
import { type Channel, type Mentions, type Message, type MessageState, shown, type World } from "./world.ts";

export interface NewMessage
  extends Omit<Message, "id" | "channelId" | "states" | "reactions" | "editedAtMs" | "deletedAtMs"> {
  /** Set only for a forum post's first message, whose id is the id of its thread. */
  id?: string;
  state: Omit<MessageState, "atMs">;
}

/** Writes, changes and deletes messages, and sends the events to sessions that can see them. */
export interface Timeline {
  add(channel: Channel, message: NewMessage): Message;
  /** `isEdit` is false for a change of something other than the text, such as a preview. */
  change(message: Message, state: Partial<MessageState>, options?: { mentions?: Mentions; isEdit?: boolean }): void;
  remove(message: Message): void;
  /** Deletes several messages at once, like a moderator's tool. */
  removeAll(channel: Channel, messages: readonly Message[]): void;
  /** Unarchives a thread in which someone writes. */
  wake(channel: Channel): void;
}

export interface TimelineDeps {
  clock: Clock;
  world: World;
  changes: Changes;
  payloads: MessagePayloads;
  deliver(event: GatewayEvent): void;
}

export function createTimeline({ clock, world, changes, payloads, deliver }: TimelineDeps): Timeline {
  function tell(type: string, message: Message, payload: GatewayEvent["payload"]): void {
    const channel = world.channels.get(message.channelId);
    if (channel === undefined) return;
    const isDirect = channel.kind === "dm" || message.ephemeralFor !== undefined;
    // Ephemeral messages count as direct, so the bot gets its own even in a channel that it cannot see.
    if (!isDirect && !world.canSee(world.bot.id, channel)) return;
    const intent = isDirect ? INTENTS.directMessages : INTENTS.guildMessages;
    deliver({ type, guildId: channel.guildId, intent, payload });
  }

  function change(
    message: Message,
    state: Partial<MessageState>,
    options: { mentions?: Mentions; isEdit?: boolean } = {},
  ) {
    const { mentions, isEdit = true } = options;
    message.states.push({ ...shown(message), ...state, atMs: clock.now() });
    if (mentions !== undefined) message.mentions = mentions;
    if (isEdit) message.editedAtMs = clock.now();
    tell("MESSAGE_UPDATE", message, (canRead) => payloads.toEvent(message, canRead));
    changes.changed();
  }

  return {
    add(channel, { id = world.nextId(), state, ...rest }) {
      const message: Message = {
        ...rest,
        id,
        channelId: channel.id,
        states: [{ ...state, atMs: clock.now() }],
        reactions: new Map(),
      };
      channel.messages.set(id, message);
      if (message.ephemeralFor === undefined) channel.lastMessageId = id;
      tell("MESSAGE_CREATE", message, (canRead) => payloads.toEvent(message, canRead));
      changes.changed();
      return message;
    },
    change,
    remove(message) {
      message.deletedAtMs = clock.now();
      const guildId = world.channels.get(message.channelId)?.guildId;
      tell("MESSAGE_DELETE", message, () => ({
        id: message.id,
        channel_id: message.channelId,
        ...(guildId === undefined ? {} : { guild_id: guildId }),
      }));
      changes.changed();
    },
    removeAll(channel, messages) {
      const [first] = messages;
      for (const message of messages) message.deletedAtMs = clock.now();
      const { guildId } = channel;
      const ids = messages.map(({ id }) => id);
      const payload = { ids, channel_id: channel.id, ...(guildId === undefined ? {} : { guild_id: guildId }) };
      if (first !== undefined) tell("MESSAGE_DELETE_BULK", first, () => payload);
      changes.changed();
    },
    wake(channel) {
      if (channel.thread?.isArchived !== true) return;
      channel.thread.isArchived = false;
      const { guildId } = channel;
      deliver({ type: "THREAD_UPDATE", guildId, intent: INTENTS.guilds, payload: () => toChannel(channel, world) });
    },
  };
}
