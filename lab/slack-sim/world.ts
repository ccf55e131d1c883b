/** The data of the simulated Slack, without rules. */
import type { Delivery } from "./delivery.ts";

/** An object with Slack's own field names. */
export type Json = Record<string, unknown>;

/** An Enterprise Grid organisation that has installed the app for all its workspaces. */
export interface Organisation {
  id: string;
  name: string;
  /** The token for all its workspaces. */
  botToken: string;
  scopes: Set<string>;
  /** Ids of the app's user, the same in every workspace. */
  bot: { id: string; botId: string };
  installerId: string;
  /** Ids of the workspaces in which people can use the app. */
  granted: Set<string>;
  revoked: RevokedReason | undefined;
}

export interface Workspace {
  id: string;
  name: string;
  /** The organisation that installed the app here; undefined if the workspace did. */
  organisation: Organisation | undefined;
  bot: User;
  botToken: string;
  scopes: Set<string>;
  users: Map<string, User>;
  channels: Map<string, Channel>;
  files: Map<string, StoredFile>;
  /** Members of each user group, by the group's id. */
  groups: Map<string, Set<string>>;
  /** Why the token was revoked; undefined while it is valid. */
  revoked: RevokedReason | undefined;
  installer: User;
}

export type RevokedReason = "token_revoked" | "account_inactive" | "invalid_auth" | "token_expired";

export interface User {
  id: string;
  name: string;
  workspace: Workspace;
  isAdmin: boolean;
  /** A guest has access to some channels only. */
  isGuest: boolean;
  /** True for a person of another organisation, who shares channels by Slack Connect. */
  isStranger: boolean;
  isDeactivated: boolean;
  /**
   * The channel that the person has open next to a conversation with an app. Slack reports it to apps with an agent
   * view.
   */
  looksAt?: Json;
  /** Set for a bot. */
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
  /** True if other organisations share the channel. The app then gets its files as stubs. */
  isShared: boolean;
  /** True if other workspaces of the same organisation share the channel. */
  isOrgShared: boolean;
  /** By timestamp, oldest first, without deleted messages. */
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
  /** The announced length of the upload. The uploaded bytes must have this length. */
  announcedBytes: number;
  owner: User;
  /** True after the bytes have arrived and the app has completed the upload. */
  isComplete: boolean;
  /** Time at which Slack has recognized the file's type and a message can display the file. */
  readyAtMs: number;
  /** Messages that contain the file. */
  shares: Message[];
}

export interface Content {
  /** The API's `text`: the whole message, or only the fallback if there are blocks. */
  text: string;
  /** The API's `markdown_text`. */
  markdown: string | undefined;
  blocks: Json[];
  /** Apps' cards, link previews and forwarded messages. */
  attachments: Json[];
  metadata: Json | undefined;
  files: StoredFile[];
}

export interface MessageState {
  atMs: number;
  /** The text that people read: the Markdown, or else the text of the blocks, or else `text`. */
  shown: string;
  isStreaming: boolean;
}

export interface Message {
  channel: Channel;
  ts: string;
  /** The timestamp of its thread's root; undefined outside threads. */
  threadTs: string | undefined;
  author: User;
  content: Content;
  /** All states of the message, oldest first. */
  states: MessageState[];
  stream: Stream | undefined;
  editedTs: string | undefined;
  isDeleted: boolean;
  /** Index of the first state that later states are compared with. Increases when a person permits another answer. */
  comparableFrom: number;
  clientMsgId: string | undefined;
  reactions: Map<string, Set<string>>;
  /** The events about this message, in the order of their first delivery. */
  deliveries: Delivery[];
}

export interface Stream {
  state: "in_progress" | "completed" | "errored";
  /** The side that ended the stream; `expired` means Slack. */
  endedBy: "app" | "user" | "expired" | undefined;
  startedAtMs: number;
  /** The newest task or plan chunk for each id. */
  tasks: Map<string, Json>;
  planTitle: string | undefined;
  /** True if the app knows that the stream has ended. */
  isKnownOver: boolean;
}

/** A message that only one person sees and that is not in the channel's history. */
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
