import { tasksToWire } from "./chunks.ts";
import { fileToStub, fileToWire } from "./file-wire.ts";
import { shownText } from "./shown-text.ts";
import { channelType, type Json, type Message, threadOf, type User } from "./world.ts";

/** Formats a message as in the Web API and in events. Includes its metadata only on request. */
export function messageToWire(message: Message, origin: string, { withMetadata = false } = {}): Json {
  const { channel, author, content, ts, threadTs, stream, editedTs, clientMsgId } = message;
  const files = content.files.map((file) => (channel.isShared ? fileToStub(file) : fileToWire(file, origin)));
  const blocks = [...content.blocks, ...(stream === undefined ? [] : tasksToWire(stream))];
  const root = threadTs === undefined ? undefined : channel.messages.get(threadTs);
  return {
    type: "message",
    ...(files.length > 0 ? { subtype: "file_share" } : {}),
    ...authorToWire(author),
    text: content.text === "" ? shownText(content) : content.text,
    ts,
    team: author.workspace.id,
    ...(blocks.length > 0 ? { blocks } : {}),
    ...(content.attachments.length > 0 ? { attachments: content.attachments } : {}),
    ...(files.length > 0 ? { files, upload: true } : {}),
    ...(clientMsgId === undefined ? {} : { client_msg_id: clientMsgId }),
    ...(threadTs === undefined ? {} : { thread_ts: threadTs, parent_user_id: root?.author.id ?? author.id }),
    ...(stream === undefined ? {} : { streaming_state: stream.state }),
    ...(editedTs === undefined ? {} : { edited: { user: author.id, ts: editedTs } }),
    ...(withMetadata && content.metadata !== undefined ? { metadata: content.metadata } : {}),
    ...reactionsToWire(message),
  };
}

/** Returns the event about a change of a message. */
export function messageToEvent(message: Message, origin: string): Json {
  const { channel, ts } = message;
  return {
    ...messageToWire(message, origin, { withMetadata: true }),
    channel: channel.id,
    channel_type: channelType(channel),
    event_ts: ts,
  };
}

/** Slack shows this instead of a deleted message that has a thread. */
export function toTombstone(ts: string): Json {
  const text = "This message was deleted.";
  return { type: "message", subtype: "tombstone", user: "USLACKBOT", text, ts, thread_ts: ts };
}

/** Returns the existing replies to a message, oldest first. */
export function repliesTo({ channel, ts }: Pick<Message, "channel" | "ts">): Message[] {
  return [...channel.messages.values()].filter((message) => message.ts !== ts && threadOf(message) === ts);
}

function authorToWire({ id, botId, name, workspace }: User): Json {
  if (botId === undefined) return { user: id };
  const profile = { id: botId, name, team_id: workspace.id, deleted: false, app_id: `A${botId.slice(1)}` };
  return { user: id, bot_id: botId, app_id: profile.app_id, bot_profile: profile };
}

function reactionsToWire({ reactions }: Message): Json {
  const all = [...reactions].filter(([, users]) => users.size > 0);
  if (all.length === 0) return {};
  return { reactions: all.map(([name, users]) => ({ name, users: [...users], count: users.size })) };
}
