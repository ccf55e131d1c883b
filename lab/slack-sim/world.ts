/** The data of the simulated Slack, without rules. */
import type { Delivery } from "./delivery.ts";

/** An object with Slack's own field names. */
export type Json = Record<string, unknown>;

/** An organisation (Enterprise Grid) that has installed the app for all its workspaces. */
export interface Organisation {
  id: string;
  name: string;
  /** One token for all its workspaces. */
  botToken: string;
  scopes: Set<string>;
  /** The ids of the app's user, which are the same in every workspace. */
  bot: { id: string; botId: string };
  installerId: string;
  /** Ids of the workspaces in which people can use the app. */
  granted: Set<string>;
  revoked: RevokedReason | undefined;
}

export interface Workspace {
  id: string;
  name: string;
  /** The organisation that installed the app for this workspace. */
  organisation: Organisation | undefined;
  /** The app's user. */
  bot: User;
  botToken: string;
  /** Scopes of the bot token. */
  scopes: Set<string>;
  users: Map<string, User>;
  channels: Map<string, Channel>;
  files: Map<string, StoredFile>;
  /** The members of each user group, by the group's id. */
  groups: Map<string, Set<string>>;
  /** The reason for refusing the token if it is revoked. */
  revoked: RevokedReason | undefined;
  /** The person who installed the app. */
  installer: User;
}

export type RevokedReason = "token_revoked" | "account_inactive" | "invalid_auth" | "token_expired";

export interface User {
  id: string;
  name: string;
  workspace: Workspace;
  isAdmin: boolean;
  /** Has access to some channels only. */
  isGuest: boolean;
  isDeactivated: boolean;
  /** The channel that the person looks at next to a conversation with an app. Slack reports it to apps with an agent view. */
  looksAt?: Json;
  /** Set for bots, including the app's own bot. */
  botId: string | undefined;
}

export type ChannelKind = "public" | "private" | "im" | "mpim";

export interface Channel {
  id: string;
  name: string;
  kind: ChannelKind;
  workspace: Workspace;
  members: Set<string>;
  isArchived: boolean;
  /** True if other organisations share the channel. Its files then arrive as stubs. */
  isShared: boolean;
  /** Shared with other workspaces of the same organisation. */
  isOrgShared: boolean;
  /** By ts, oldest first, without deleted messages. */
  messages: Map<string, Message>;
  ephemerals: Ephemeral[];
}

export interface StoredFile {
  id: string;
  name: string;
  title: string;
  mimeType: string;
  bytes: Uint8Array;
  altText: string;
  /** The length that the app announced for an upload. The bytes must have this length. */
  announcedBytes: number;
  owner: User;
  /** Set when the bytes have arrived and the app has completed the upload. */
  isComplete: boolean;
  /** When Slack knows the file's type. From then on a message can show the file inside. */
  readyAtMs: number;
  /** The messages that share the file. */
  shares: Message[];
}

export interface Content {
  /** The API's `text`: the message itself, or the fallback if there are blocks. */
  text: string;
  /** The API's `markdown_text`. */
  markdown: string | undefined;
  blocks: Json[];
  /** Cards from apps, link previews, and forwarded messages. */
  attachments: Json[];
  metadata: Json | undefined;
  files: StoredFile[];
}

/** One state of a message. */
export interface MessageState {
  atMs: number;
  /** The text that a person reads: the Markdown if it exists, otherwise the text of the blocks, otherwise `text`. */
  shown: string;
  isStreaming: boolean;
}

export interface Message {
  channel: Channel;
  ts: string;
  /** The root of its thread. Undefined for a message at the top level. */
  threadTs: string | undefined;
  author: User;
  content: Content;
  /** All its states, oldest first. */
  states: MessageState[];
  stream: Stream | undefined;
  editedTs: string | undefined;
  isDeleted: boolean;
  /** If true, states before this one are not compared, because a person's action allows the app to start again. */
  comparableFrom: number;
  clientMsgId: string | undefined;
  reactions: Map<string, Set<string>>;
  /** The events about this message for the app, in the order of their first delivery. */
  deliveries: Delivery[];
}

export interface Stream {
  state: "in_progress" | "completed" | "errored";
  /** Why the stream ended. `expired` means that Slack itself ended it. */
  endedBy: "app" | "user" | "expired" | undefined;
  startedAtMs: number;
  /** The chunks of tasks and plans. Only the newest one for each id. */
  tasks: Map<string, Json>;
  planTitle: string | undefined;
  /** True if the app knows that the stream has ended. */
  isKnownOver: boolean;
}

/** A message that only one person sees, and that is not in the channel's history. */
export interface Ephemeral {
  channel: Channel;
  ts: string;
  userId: string;
  threadTs: string | undefined;
  content: Content;
  shown: string;
  atMs: number;
}

export function emptyContent(content: Partial<Content> = {}): Content {
  return { text: "", markdown: undefined, blocks: [], attachments: [], metadata: undefined, files: [], ...content };
}

export function isOfApp(message: Message): boolean {
  return message.author === message.channel.workspace.bot;
}

export function threadOf(message: Message): string {
  return message.threadTs ?? message.ts;
}

export function channelType(channel: Channel): string {
  return { public: "channel", private: "group", im: "im", mpim: "mpim" }[channel.kind];
}
