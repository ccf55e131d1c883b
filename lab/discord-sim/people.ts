import { evaluateMentions, NO_MENTIONS, toMentions } from "./mentions.ts";
import type { Simulation } from "./simulation.ts";
import type { Threads } from "./threads.ts";
import { type Attachment, type Channel, type Message, type MessageState, shown, type User } from "./world.ts";

const REPLY = 19;
const WEBHOOK_POST = 0;

export interface FileToUpload {
  name: string;
  bytes: Uint8Array;
}

/** Content that an app shows in addition to its text. */
export type WebhookCard = Partial<Pick<MessageState, "embeds" | "components">>;

export interface SayOptions {
  replyTo?: Message;
  /** If true, the reply notifies the author of the original message. Default: true, as in Discord's clients. */
  pings?: boolean;
  attachments?: readonly FileToUpload[];
  /** If true, puts a mention of the bot in front of the text. */
  mentionBot?: boolean;
  /** The type of a system message, such as 7 for a new member. */
  type?: number;
}

export interface People {
  say(channel: Channel, user: User, text: string, options?: SayOptions): Message;
  edit(message: Message, text: string): void;
  delete(message: Message): void;
  /** Deletes several messages of one channel at once. */
  deleteAll(channel: Channel, messages: readonly Message[]): void;
  /** Forwards a message in its current state. */
  forward(message: Message, to: Channel, user: User): Message;
  /** Adds a link preview to a message. Discord sends an update that does not count as an edit. */
  unfurl(message: Message): void;
  /** Opens a thread on a message, or a thread without a message. */
  openThread(at: Channel | Message, user: User, name: string, options?: { isPrivate?: boolean }): Channel;
  /** Writes a post in a forum: a thread whose first message has the thread's id. */
  postInForum(forum: Channel, user: User, title: string, text: string, options?: SayOptions): Channel;
  /** Archives, unarchives, locks or unlocks a thread. */
  setThread: Threads["set"];
  addToThread: Threads["addMember"];
  /** Writes a message as a webhook with this name. */
  sayAsWebhook(channel: Channel, name: string, text: string, shows?: WebhookCard): Message;
}

export function createPeople({ world, timeline, files }: Simulation, threads: Threads): People {
  const { bot } = world;
  const webhooks = new Map<string, User>();

  function mentionsIn(channel: Channel, user: User, text: string, repliedUserId: string | undefined) {
    const roles = world.guilds.get(channel.guildId ?? "")?.roles;
    const mayMentionEveryone = channel.guildId !== undefined && world.can(user.id, channel, "MentionEveryone");
    return toMentions(
      evaluateMentions(text, {
        allowed: undefined,
        mayMentionRole: (id) =>
          roles?.has(id) === true && (mayMentionEveryone || roles.get(id)?.isMentionable === true),
        mayMentionEveryone,
        isUser: (id) => world.users.has(id),
        repliedUserId,
      }),
    );
  }

  function join(channel: Channel, user: User | undefined): void {
    if (user === undefined || channel.thread?.memberIds.has(user.id) !== false) return;
    threads.addMember(channel, user);
  }

  function upload(channel: Channel, attachments: readonly FileToUpload[]): Attachment[] {
    return attachments.map((file) => files.store({ ...file, id: world.nextId(), channelId: channel.id }));
  }

  function say(channel: Channel, user: User, text: string, options: SayOptions & { id?: string } = {}): Message {
    const { replyTo, pings = true, attachments = [], mentionBot = false, type, id } = options;
    if (!world.canSee(user.id, channel)) throw new Error(`${user.name} cannot see ${channel.name}.`);
    if (channel.thread?.isLocked === true) throw new Error(`${user.name} cannot write: ${channel.name} is locked.`);
    timeline.wake(channel);
    const content = (mentionBot ? `<@${bot.id}> ${text}` : text).trim();
    const mentions = mentionsIn(channel, user, content, pings ? replyTo?.author.id : undefined);
    // A mention in a thread adds the mentioned person to the thread.
    for (const id of mentions.userIds) join(channel, world.users.get(id));
    return timeline.add(channel, {
      author: user,
      type: type ?? (replyTo === undefined ? 0 : REPLY),
      mentions,
      ...(id === undefined ? {} : { id }),
      ...(replyTo === undefined ? {} : { reference: { messageId: replyTo.id, channelId: replyTo.channelId } }),
      state: { content, embeds: [], components: [], attachments: upload(channel, attachments), flags: 0 },
    });
  }

  return {
    say,
    openThread(at, user, name, { isPrivate = false } = {}) {
      const parent = "kind" in at ? at : world.channels.get(at.channelId);
      if (parent === undefined) throw new Error(`Message ${at.id} is in no channel.`);
      return threads.open(parent, { name, owner: user, isPrivate, ...("kind" in at ? {} : { starter: at }) });
    },
    postInForum(forum, user, title, text, options = {}) {
      if (forum.kind !== "forum") throw new Error(`${forum.name} is not a forum.`);
      const thread = threads.open(forum, { name: title, owner: user });
      say(thread, user, text, { ...options, id: thread.id });
      return thread;
    },
    setThread: threads.set,
    addToThread: threads.addMember,
    edit(message, text) {
      const channel = world.channels.get(message.channelId);
      if (channel === undefined) return;
      const repliedUserId = world.message(message.channelId, message.reference?.messageId ?? "")?.author.id;
      timeline.change(
        message,
        { content: text },
        { mentions: mentionsIn(channel, message.author, text, repliedUserId) },
      );
    },
    delete: (message) => timeline.remove(message),
    deleteAll: (channel, messages) => timeline.removeAll(channel, messages),
    forward: (message, to, user) =>
      timeline.add(to, {
        author: user,
        type: 0,
        mentions: NO_MENTIONS,
        reference: { messageId: message.id, channelId: message.channelId },
        forwarded: shown(message),
        state: { content: "", embeds: [], components: [], attachments: [], flags: 0 },
      }),
    unfurl(message) {
      const embeds = [...shown(message).embeds, { type: "link", url: "https://example.com/", title: "Example" }];
      timeline.change(message, { embeds }, { isEdit: false });
    },
    sayAsWebhook(channel, name, text, { embeds = [], components = [] } = {}) {
      const author = webhooks.get(name) ?? { id: world.nextId(), name, isBot: true, acceptsDms: false };
      webhooks.set(name, author);
      return timeline.add(channel, {
        author,
        type: WEBHOOK_POST,
        mentions: mentionsIn(channel, author, text, undefined),
        webhookId: author.id,
        state: { content: text, embeds, components, attachments: [], flags: 0 },
      });
    },
  };
}
