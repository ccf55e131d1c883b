import type { Assistant } from "./assistant.ts";
import type { Core } from "./core.ts";
import { messageToEvent, messageToWire, repliesTo, toTombstone } from "./message-wire.ts";
import type { Search } from "./methods/search.ts";
import { shownText } from "./shown-text.ts";
import { TOP_LEVEL, type Watchdog } from "./watchdog.ts";
import {
  type Channel,
  type Content,
  channelType,
  type Ephemeral,
  isOfApp,
  type Json,
  type Message,
  type Stream,
  threadOf,
  type User,
} from "./world.ts";

export interface PostOptions {
  threadTs?: string | undefined;
  stream?: Stream | undefined;
  /** If true, a mention in the message causes no `app_mention`. */
  isMentionHidden?: boolean;
  linksNames?: boolean;
}

/** Adds, changes and deletes all messages. For each change, the watchdog checks it and the app gets an event. */
export interface Messages {
  post(channel: Channel, author: User, content: Content, options?: PostOptions): Message;
  /** Changes a message. A change by a person counts as an edit. */
  change(message: Message, content: Partial<Content>, options?: { isEdit?: boolean; linksNames?: boolean }): void;
  remove(message: Message): void;
  postEphemeral(ephemeral: Omit<Ephemeral, "ts" | "shown" | "atMs">): Ephemeral;
}

export function createMessages(core: Core, watchdog: Watchdog, assistant: Assistant, search: Search): Messages {
  const { clock, changes, newTs } = core;

  function look(message: Message, linksNames: boolean): void {
    const shown = shownText(message.content);
    const isStreaming = message.stream?.state === "in_progress";
    message.states.push({ atMs: clock.now(), shown, isStreaming });
    if (isOfApp(message)) watchdog.looked(message, { linksNames });
    changes.changed();
  }

  function tell(message: Message, event: Json): void {
    const { channel } = message;
    const delivery = core.emit(channel.workspace, event, { channel, message });
    if (delivery !== undefined) message.deliveries.push(delivery);
  }

  function tellMention(message: Message): void {
    const { channel, author, content, editedTs } = message;
    const { bot } = channel.workspace;
    // In a channel that organisations share, the app gets the message event, but no `app_mention`.
    const isTold = channel.kind !== "im" && !channel.isShared && author !== bot;
    if (!isTold || !content.text.includes(`<@${bot.id}>`)) return;
    const { type: _type, subtype: _subtype, parent_user_id: _parent, ...wire } = messageToWire(message, core.origin());
    const place = { channel: channel.id, event_ts: editedTs ?? message.ts };
    tell(message, { type: "app_mention", ...wire, ...place, action_token: search.issue(message) });
  }

  function tellChange(message: Message, subtype: string, fields: Json): void {
    const { channel } = message;
    const eventTs = newTs();
    const place = { channel: channel.id, channel_type: channelType(channel), ts: eventTs, event_ts: eventTs };
    tell(message, { type: "message", subtype, hidden: true, ...place, ...fields });
  }

  return {
    post(channel, author, content, { threadTs, stream, isMentionHidden = false, linksNames = false } = {}) {
      if (author === channel.workspace.bot) watchdog.posting(channel, content);
      const message: Message = {
        channel,
        ts: newTs(),
        threadTs,
        author,
        content,
        states: [],
        stream,
        editedTs: undefined,
        isDeleted: false,
        comparableFrom: 0,
        clientMsgId: author.botId === undefined && content.files.length === 0 ? crypto.randomUUID() : undefined,
        reactions: new Map(),
        deliveries: [],
      };
      channel.messages.set(message.ts, message);
      for (const file of content.files) file.shares.push(message);
      if (author !== channel.workspace.bot) {
        watchdog.triggered(channel, threadOf(message));
        if (threadTs === undefined) watchdog.triggered(channel, TOP_LEVEL);
      } else assistant.posted(channel, threadOf(message));
      look(message, linksNames);
      const isBeside = channel.kind === "im" && author.looksAt !== undefined;
      tell(message, {
        ...messageToEvent(message, core.origin()),
        ...(isBeside && { app_context: author.looksAt }),
        ...(maySearch(message) && { action_token: search.issue(message) }),
      });
      if (!isMentionHidden) tellMention(message);
      return message;
    },
    change(message, content, { isEdit = false, linksNames = false } = {}) {
      const before = messageToWire(message, core.origin());
      message.content = { ...message.content, ...content };
      if (isEdit) message.editedTs = newTs();
      if (isEdit && !isOfApp(message)) watchdog.triggered(message.channel, threadOf(message));
      look(message, linksNames);
      tellChange(message, "message_changed", {
        message: messageToWire(message, core.origin(), { withMetadata: true }),
        previous_message: before,
      });
      if (isEdit) tellMention(message);
    },
    remove(message) {
      const { channel, ts, threadTs } = message;
      const before = messageToWire(message, core.origin());
      const hasReplies = threadTs === undefined && repliesTo(message).length > 0;
      message.isDeleted = true;
      channel.messages.delete(ts);
      changes.changed();
      if (!hasReplies) {
        tellChange(message, "message_deleted", { deleted_ts: ts, previous_message: before });
        return;
      }
      // Slack replaces a deleted root with a tombstone, so its deletion is a change.
      const tombstone = { ...toTombstone(ts), hidden: true };
      tellChange(message, "message_changed", { message: tombstone, previous_message: before });
    },
    postEphemeral(said) {
      const ephemeral: Ephemeral = { ...said, ts: newTs(), shown: shownText(said.content), atMs: clock.now() };
      // "Ephemeral messages in threads are only shown if there is already an active thread."
      // https://docs.slack.dev/reference/methods/chat.postEphemeral
      if (hasThread(said)) said.channel.ephemerals.push(ephemeral);
      watchdog.looked(said, { linksNames: false });
      changes.changed();
      return ephemeral;
    },
  };
}

/** True if the message's event contains a token for searches. In a public channel, the message must mention the app. */
function maySearch({ channel, author, content }: Message): boolean {
  const { bot } = channel.workspace;
  return author.botId === undefined && (channel.kind !== "public" || content.text.includes(`<@${bot.id}>`));
}

/** True outside threads, and in a thread that has replies. */
function hasThread({ channel, threadTs }: Pick<Ephemeral, "channel" | "threadTs">): boolean {
  return threadTs === undefined || [...channel.messages.values()].some((message) => message.threadTs === threadTs);
}
