import type { Core } from "./core.ts";
import { fileToWire, mimeTypeOf } from "./file-wire.ts";
import { feedbackIdOf, type Interaction, type Interactions } from "./interactions.ts";
import type { Messages } from "./messages.ts";
import { openDirect } from "./methods/conversations.ts";
import type { View } from "./views.ts";
import {
  type Channel,
  type Content,
  channelType,
  type Ephemeral,
  emptyContent,
  type Json,
  type Message,
  type StoredFile,
  threadOf,
  type User,
} from "./world.ts";

export interface Place {
  /** The message in whose thread the person writes. */
  thread?: Message;
}

export interface LocalFile {
  name: string;
  bytes: Uint8Array;
}

/**
 * A person in a workspace, with everything that they can do. Their messages appear immediately, and the app gets the
 * events at the same time.
 */
export interface Person {
  readonly id: string;
  readonly user: User;
  say(channel: Channel, text: string, place?: Place): Message;
  /** Posts blocks and attachments, with or without text, as apps and forwarded messages do. */
  show(channel: Channel, content: Partial<Pick<Content, "text" | "blocks" | "attachments">>, place?: Place): Message;
  /** Mentions the app at the beginning of the text. */
  mention(channel: Channel, text: string, place?: Place): Message;
  dm(text: string, place?: Place): Message;
  direct(): Channel;
  /** Joins a channel, which Slack announces there. */
  join(channel: Channel): void;
  edit(message: Message, text: string): void;
  /** Changes a message's blocks or attachments, for example its table, but not its text. */
  editShown(message: Message, content: Partial<Pick<Content, "blocks" | "attachments">>): void;
  /** Adds a link preview to a message: a change that does not count as an edit. */
  unfurl(message: Message): void;
  delete(message: Message): void;
  /** Posts a message with files. Even if it mentions the app, the app gets only a message event, no `app_mention`. */
  upload(channel: Channel, files: readonly LocalFile[], text?: string, place?: Place): Message;
  /** Uploads files into a form's `file_input`. No channel shows these files. */
  attach(files: readonly LocalFile[]): Json[];
  react(message: Message, name: string): void;
  /** Presses a button of a message. Throws if no button has this `action_id`. */
  press(message: Message | Ephemeral, actionId: string): Promise<Interaction>;
  /** Presses one of Slack's own feedback buttons. Throws if the message has none. */
  judge(message: Message, button: "positive_button" | "negative_button"): Promise<Interaction>;
  /** Presses Slack's own Stop button, which ends all growing messages in the thread. */
  stop(message: Message): void;
  /** Types a slash command in a channel, because Slack allows none in a thread. */
  command(command: string, text: string, channel: Channel): Promise<Interaction>;
  /** Uses a message shortcut, or a global shortcut without a message. */
  shortcut(callbackId: string, message?: Message): Promise<Interaction>;
  submitView(view: View, values: Json): Promise<Interaction>;
  closeView(view: View): Promise<Interaction | undefined>;
  /** Presses a button of a view. `action` is the button with its `block_id`. */
  pressInView(view: View, action: Json): Promise<Interaction>;
  openHome(tab?: "home" | "messages"): void;
  /** Opens a channel next to the conversation with the app. */
  lookAt(channel: Channel): void;
  /** Opens a channel next to a thread of the older assistant. Messages in such a thread do not name the channel. */
  lookAtFrom(thread: Message, channel: Channel): void;
}

export interface PersonDeps {
  core: Core;
  messages: Messages;
  interactions: Interactions;
  home(userId: string): View | undefined;
}

export function createPerson(user: User, { core, messages, interactions, home }: PersonDeps): Person {
  const { workspace } = user;
  const direct = () => openDirect(core, workspace, user);

  function rootOf({ thread }: Place): string | undefined {
    return thread === undefined ? undefined : threadOf(thread);
  }

  function say(channel: Channel, text: string, place: Place = {}): Message {
    return messages.post(channel, user, emptyContent({ text }), { threadTs: rootOf(place) });
  }

  function keep({ name, bytes }: LocalFile): StoredFile {
    const file: StoredFile = {
      id: core.newId("F"),
      name,
      title: name,
      mimeType: mimeTypeOf(name),
      bytes,
      altText: "",
      announcedBytes: bytes.length,
      owner: user,
      isComplete: true,
      readyAtMs: core.clock.now(),
      shares: [],
    };
    workspace.files.set(file.id, file);
    return file;
  }

  function stop(message: Message): void {
    const { channel } = message;
    const growing = [...channel.messages.values()].filter(
      (one) => threadOf(one) === threadOf(message) && one.stream?.state === "in_progress",
    );
    for (const one of growing) {
      Object.assign(one.stream ?? {}, { state: "completed", endedBy: "user" });
      messages.change(one, {});
    }
    const event = { channel: channel.id, user: user.id, thread_ts: threadOf(message), event_ts: core.newTs() };
    const streaming_message_ts = growing.map(({ ts }) => ts);
    core.emit(workspace, { type: "agent_session_stopped", ...event, streaming_message_ts }, { channel });
  }

  return {
    id: user.id,
    user,
    say,
    show: (channel, content, place = {}) =>
      messages.post(channel, user, emptyContent(content), { threadTs: rootOf(place) }),
    mention: (channel, text, place) => say(channel, `<@${workspace.bot.id}> ${text}`, place),
    dm: (text, place) => say(direct(), text, place),
    direct,
    join(channel) {
      channel.members.add(user.id);
      const ts = core.newTs();
      const text = `<@${user.id}> has joined the channel`;
      const place = { channel: channel.id, channel_type: channelType(channel), ts, event_ts: ts };
      core.emit(workspace, { type: "message", subtype: "channel_join", user: user.id, text, ...place }, { channel });
    },
    unfurl: (message) => messages.change(message, {}),
    editShown: (message, content) => messages.change(message, content, { isEdit: true }),
    edit: (message, text) => messages.change(message, { text }, { isEdit: true }),
    delete: (message) => messages.remove(message),
    upload(channel, files, text = "", place = {}) {
      const content = emptyContent({ text, files: files.map(keep) });
      return messages.post(channel, user, content, { threadTs: rootOf(place), isMentionHidden: true });
    },
    attach: (files) => files.map((file) => fileToWire(keep(file), core.origin())),
    react(message, name) {
      message.reactions.set(name, (message.reactions.get(name) ?? new Set<string>()).add(user.id));
      core.changes.changed();
    },
    press: (message, actionId) => interactions.press({ user, message, actionId }),
    judge: (message, button) => interactions.press({ user, message, actionId: feedbackIdOf(message), button }),
    stop,
    command: (command, text, channel) => interactions.command(user, channel, command, text),
    shortcut: (callbackId, message) =>
      message === undefined
        ? interactions.globalShortcut(user, callbackId)
        : interactions.messageShortcut(user, message, callbackId),
    submitView: (view, values) => interactions.submit(user, view, values),
    closeView: (view) => interactions.cancel(user, view),
    pressInView: (view, action) => interactions.pressInView(user, view, action),
    lookAt(channel) {
      const entities = [{ type: "slack#/types/channel_id", value: channel.id, team_id: workspace.id }];
      user.looksAt = { entities };
      const about = { user: user.id, channel: direct().id, event_ts: core.newTs() };
      core.emit(workspace, { type: "app_context_changed", ...about, context: user.looksAt });
    },
    lookAtFrom(thread, channel) {
      const context = { channel_id: channel.id, team_id: workspace.id, enterprise_id: null };
      const place = { user_id: user.id, context, channel_id: direct().id, thread_ts: rootOf({ thread }) };
      const event = { type: "assistant_thread_context_changed", assistant_thread: place, event_ts: core.newTs() };
      core.emit(workspace, event);
    },
    openHome(tab = "home") {
      const channel = direct();
      const view = tab === "home" ? home(user.id) : undefined;
      const event = { user: user.id, channel: channel.id, tab, event_ts: core.newTs() };
      core.emit(workspace, { type: "app_home_opened", ...event, ...(view === undefined ? {} : { view: view.body }) });
    },
  };
}
