/** What the server tells the page and the page tells the server. Types only, in one place for both sides. */

/** Anybody one can speak as at the page. */
export interface PersonRow {
  type: "person";
  /** Number of the row's last change; one counter for all rows. */
  seq: number;
  id: string;
  name: string;
}

export type ChannelKind = "chat" | "channel";

/** A direct chat with the bot, or a channel of several people. */
export interface ChannelRow {
  type: "channel";
  seq: number;
  id: string;
  kind: ChannelKind;
  title: string;
  createdAt: number;
}

export interface FileRow {
  id: string;
  name: string;
  /** Sniffed from the bytes. */
  contentType: string;
  sizeBytes: number;
  /** May be shown in the page; everything else is only ever downloaded. */
  isImage: boolean;
  /** Pixels, null where unknown. They keep the page from jumping while a picture loads. */
  width: number | null;
  height: number | null;
}

export interface ButtonRow {
  action: "stop" | "retry" | "continue" | "good" | "bad" | "again" | "vary" | "edit" | "upscale" | "delete";
  turnId: string;
  label: string;
}

export interface MessageRow {
  type: "message";
  seq: number;
  id: number;
  channelId: string;
  /** The message this one is a reply to, in a channel. */
  threadId: number | null;
  /** Null is the bot. */
  authorId: string | null;
  /** Made by the browser that sent it; null for the bot's. */
  nonce: string | null;
  text: string;
  isCommand: boolean;
  /** Only this person is shown the message. */
  visibleTo: string | null;
  buttons: ButtonRow[];
  /** More text is coming. */
  isStreaming: boolean;
  files: FileRow[];
  createdAt: number;
  editedAt: number | null;
  /** A deleted row has neither text nor files. */
  isDeleted: boolean;
}

export type Row = PersonRow | ChannelRow | MessageRow;

export interface CommandHelp {
  name: string;
  description: string;
}

export interface Example {
  label: string;
  prompt: string;
}

/** First event of every stream. */
export interface Hello {
  /** Changes when the tables are new: what the page knows is then worth nothing. */
  epoch: string;
  botName: string;
  commands: CommandHelp[];
  examples: Example[];
  maxFileBytes: number;
  maxFiles: number;
  maxTextLength: number;
}

/** What the bot is doing before there is text. */
export interface Progress {
  channelId: string;
  threadId: number | null;
  text: string;
}

export interface SendBody {
  nonce: string;
  authorId: string;
  channelId: string;
  threadId: number | null;
  text: string;
  fileIds: string[];
  /** The chat does not exist yet and is made with this message. */
  isNewChat: boolean;
}

export interface EditBody {
  nonce: string;
  authorId: string;
  text: string;
}

export interface DeleteBody {
  nonce: string;
  authorId: string;
}

export interface ActionBody {
  nonce: string;
  authorId: string;
  action: "stop" | "retry" | "continue" | "good" | "bad" | "again" | "vary" | "upscale" | "delete";
  turnId: string;
}
