import { NO_MENTIONS } from "./mentions.ts";
import { MESSAGE_FLAGS } from "./message-payload.ts";
import { toChannel, toThreadMember, toUser } from "./payloads.ts";
import { INTENTS } from "./sessions.ts";
import type { Simulation } from "./simulation.ts";
import { type Channel, type Message, shown, type User } from "./world.ts";

const THREAD_CREATED = 18;
const THREAD_STARTER = 21;
const NOTHING = { content: "", embeds: [], components: [], attachments: [], flags: 0 };

export interface NewThread {
  name: string;
  owner: User;
  isPrivate?: boolean;
  /** The message on which the thread is opened. The thread gets the id of this message. */
  starter?: Message;
  autoArchiveMinutes?: number;
}

/** Opens and changes threads, for people and the bot. */
export interface Threads {
  open(parent: Channel, thread: NewThread): Channel;
  set(channel: Channel, state: { isArchived?: boolean; isLocked?: boolean; name?: string }): void;
  addMember(channel: Channel, user: User): void;
  removeMember(channel: Channel, user: User): void;
  activeIn(guildId: string): Channel[];
}

export function createThreads({ world, timeline, deliver }: Simulation): Threads {
  const { bot } = world;

  function tell(type: string, channel: Channel, extra: Record<string, unknown> = {}): void {
    if (!world.canSee(bot.id, channel)) return;
    const payload = () => ({ ...toChannel(channel, world), ...extra });
    deliver({ type, guildId: channel.guildId, intent: INTENTS.guilds, payload });
  }

  function announce(parent: Channel, thread: Channel, { owner, starter }: NewThread): void {
    if (starter !== undefined) {
      starter.threadId = thread.id;
      timeline.change(starter, { flags: shown(starter).flags | MESSAGE_FLAGS.hasThread }, { isEdit: false });
      timeline.add(thread, {
        author: starter.author,
        type: THREAD_STARTER,
        mentions: NO_MENTIONS,
        reference: { messageId: starter.id, channelId: parent.id },
        state: NOTHING,
      });
    } else if (parent.kind !== "forum" && thread.kind === "public-thread") {
      const state = { ...NOTHING, content: thread.name };
      timeline.add(parent, { author: owner, type: THREAD_CREATED, mentions: NO_MENTIONS, threadId: thread.id, state });
    }
  }

  return {
    open(parent, options) {
      const { name, owner, isPrivate = false, starter, autoArchiveMinutes = 1440 } = options;
      const channel: Channel = {
        id: starter?.id ?? world.nextId(),
        kind: isPrivate ? "private-thread" : "public-thread",
        guildId: parent.guildId,
        name,
        parentId: parent.id,
        ownerId: owner.id,
        overwrites: new Map(),
        thread: { isArchived: false, isLocked: false, autoArchiveMinutes, memberIds: new Set([owner.id]) },
        slowmodeSeconds: 0,
        lastMessageId: null,
        messages: new Map(),
      };
      world.channels.set(channel.id, channel);
      tell("THREAD_CREATE", channel, { newly_created: true });
      announce(parent, channel, options);
      return channel;
    },
    set(channel, { isArchived, isLocked, name }) {
      if (channel.thread === undefined) throw new Error(`${channel.name} is not a thread.`);
      channel.thread.isArchived = isArchived ?? channel.thread.isArchived;
      channel.thread.isLocked = isLocked ?? channel.thread.isLocked;
      channel.name = name ?? channel.name;
      tell("THREAD_UPDATE", channel);
    },
    addMember(channel, user) {
      const couldSee = world.canSee(bot.id, channel);
      channel.thread?.memberIds.add(user.id);
      if (user === bot && !couldSee) tell("THREAD_CREATE", channel);
      else tell("THREAD_MEMBERS_UPDATE", channel, membersChange(channel, { added: user }));
    },
    removeMember(channel, user) {
      channel.thread?.memberIds.delete(user.id);
      tell("THREAD_MEMBERS_UPDATE", channel, membersChange(channel, { removed: user }));
    },
    activeIn(guildId) {
      const own = [...world.channels.values()].filter((channel) => channel.guildId === guildId);
      return own.filter((channel) => channel.thread?.isArchived === false && world.canSee(bot.id, channel));
    },
  };
}

function membersChange(
  channel: Channel,
  { added, removed }: { added?: User; removed?: User },
): Record<string, unknown> {
  return {
    id: channel.id,
    guild_id: channel.guildId,
    member_count: channel.thread?.memberIds.size ?? 0,
    ...(added === undefined
      ? {}
      : { added_members: [{ ...toThreadMember(channel.id, added.id), user: toUser(added) }] }),
    ...(removed === undefined ? {} : { removed_member_ids: [removed.id] }),
  };
}
