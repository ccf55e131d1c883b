/** What exists in the simulated Slack: data, without rules. */
import type { Delivery } from "./delivery.ts";

/** An object in the wire's own names. */
export type Json = Record<string, unknown>;

export interface Workspace {
  id: string;
  name: string;
  /** The app's own user. */
  bot: User;
  botToken: string;
  /** Scopes of the bot token. */
  scopes: Set<string>;
  users: Map<string, User>;
  channels: Map<string, Channel>;
  files: Map<string, StoredFile>;
  /** Members of the user groups, by the group's id. */
  groups: Map<string, Set<string>>;
  /** Why the token is refused, once it is. */
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
  /** What they have open beside a conversation with an app, as an app with an agent view is told. */
  looksAt?: Json;
  /** Set for bots, the app's own included. */
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
  /** With other organisations: files arrive as stubs. */
  isShared: boolean;
  /** By ts, oldest first. Deleted messages are gone. */
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
  /** The length that was promised for an upload; the bytes must have it. */
  announcedBytes: number;
  owner: User;
  /** Set when its bytes have come and the upload was completed. */
  isComplete: boolean;
  /** When its kind is known, and a message can show it inside. */
  readyAtMs: number;
  /** Messages that carry it. */
  shares: Message[];
}

export interface Content {
  /** `text` of the API: the message itself, or the fallback when there are blocks. */
  text: string;
  /** `markdown_text` of the API. */
  markdown: string | undefined;
  blocks: Json[];
  /** Cards of apps, previews of links, and forwarded messages. */
  attachments: Json[];
  metadata: Json | undefined;
  files: StoredFile[];
}

/** One look that a message had. */
export interface MessageState {
  atMs: number;
  /** As a person reads it: the Markdown, else the text inside the blocks, else the text. */
  shown: string;
  isStreaming: boolean;
}

export interface Message {
  channel: Channel;
  ts: string;
  /** Root of its thread; undefined for a message at the top level. */
  threadTs: string | undefined;
  author: User;
  content: Content;
  /** Every look it had, oldest first. */
  states: MessageState[];
  stream: Stream | undefined;
  editedTs: string | undefined;
  isDeleted: boolean;
  /** States before this one are not compared: a person did something that makes the app begin anew. */
  comparableFrom: number;
  clientMsgId: string | undefined;
  reactions: Map<string, Set<string>>;
  /** Events that told the app of it, in the order in which they were sent first. */
  deliveries: Delivery[];
}

export interface Stream {
  state: "in_progress" | "completed" | "errored";
  /** Who ended it. `expired` is Slack itself. */
  endedBy: "app" | "user" | "expired" | undefined;
  startedAtMs: number;
  /** Chunks of tasks and plans, the newest of each id. */
  tasks: Map<string, Json>;
  planTitle: string | undefined;
  /** The app was told that the stream is over. */
  isKnownOver: boolean;
}

/** A message that one person sees, and that leaves no trace in the channel. */
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
