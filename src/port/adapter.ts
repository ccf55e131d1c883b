/**
 * The port: what the core asks of a platform, and what a platform tells the core. Everything that crosses it is plain
 * JSON, because an event may be taken up by another process, or by the next run after a crash. So a reply is written to
 * an address, never to a live SDK object. Rejections that the core branches on are `SinkError`s.
 */

export interface Author {
  /** Unique within the platform: where its own id names somebody in one workspace alone, with that workspace. */
  id: string;
  former?: { id: string; within?: string }; // What was kept of them has this id, see `KnownAs` in people/identity.ts.
  /** As shown to people. Untrusted text. */
  name: string;
  /** May press buttons and give commands on behalf of others. */
  isModerator?: boolean;
  /** May change the settings of the channel; absent: everybody may. */
  mayConfigure?: boolean;
}

/** Where a reply goes. Plain JSON: any process of ours can write there, also after a restart. */
export interface ReplyAddress {
  platform: string;
  channelId: string;
  threadId?: string;
  /** The workspace, or server, that the channel is in; absent where there is none. */
  workspaceId?: string;
  /** The message the reply answers, where the platform shows that. */
  replyToId?: string;
  /** Only this person, an author's id, sees the reply, where the platform can do that. */
  visibleTo?: string;
  /** What only the platform's own adapter reads. */
  extra?: Readonly<Record<string, string>>;
}

/** A file somebody attached. It is opened again each time it is needed, so its bytes are not kept in the history. */
export interface AttachmentRef {
  platform: string;
  /** What `openAttachment` needs to find it again. */
  id: string;
  /** Untrusted text. */
  name: string;
  sizeBytes: number;
  /** The platform keeps it for a while only, and for no time that anybody may rely on. */
  isFleeting?: true;
}

interface EventBase {
  /** Unique per platform event. The queue claims it: a second delivery of the same key is dropped. */
  key: string;
  /** `{platform}:…`, without "~": see "Conversations" in the design of each adapter. Of its place, also when it is private. */
  conversationId: string;
  author: Author;
  reply: ReplyAddress;
  /** When the platform says it happened, Unix milliseconds. */
  at: number;
}

export interface MessageEvent extends EventBase {
  kind: "message";
  /** Unique over all platforms: `{platform}:…`. */
  messageId: string;
  /** Without the mention of the bot that addressed it. */
  text: string;
  attachments: AttachmentRef[];
  /**
   * The message this one is a reply to, whose conversation it belongs to, whatever `conversationId` says. What was said
   * there after that message is another branch, and is not shown to the model.
   */
  inReplyTo?: string;
  /**
   * `bot`: a mention or a direct message, always answered. `open`: nobody in particular, answered while the bot follows
   * the conversation. `other`: somebody else, never answered, and the bot stops following until it is addressed again.
   */
  addressed: "bot" | "open" | "other";
}

/** A person changed a message. The text and the attachments are whole, not a difference. */
export interface EditedEvent extends EventBase {
  kind: "edited";
  messageId: string;
  text: string;
  attachments: AttachmentRef[];
  /** The edit made it a message to the bot: it is answered if it was not before. */
  addressed?: "bot";
}

export interface DeletedEvent extends EventBase {
  kind: "deleted";
  messageId: string;
}

export interface CommandEvent extends EventBase {
  kind: "command";
  /** Without the slash. */
  name: string;
  /** Everything after the name. */
  text: string;
  attachments?: AttachmentRef[];
  /** What the platform asked for in fields of its own, by the names of `ImagineOptions` in `imagine-menu.ts`. */
  options?: Readonly<Record<string, string>>;
}

/** `good` and `bad` judge an answer; those after them belong to a picture. */
export type Action = "stop" | "retry" | "continue" | "good" | "bad" | "again" | "vary" | "edit" | "upscale" | "delete";
export type PressedAction = Exclude<Action, "edit">;

/** A button was pressed. For `edit` the platform opens its form, and what is sent with that is a command. */
export interface ActionEvent extends EventBase {
  kind: "action";
  action: PressedAction;
  /** The turn, or the picture, that the button belongs to. */
  turnId: string;
}

export type InboundEvent = MessageEvent | EditedEvent | DeletedEvent | CommandEvent | ActionEvent;

/**
 * Takes over an event. Resolves when it is durable, also when it had been accepted before; only then may the platform's
 * delivery be acknowledged. Rejects when it could not be stored.
 */
export type Accept = (event: InboundEvent) => Promise<void>;

export interface Button {
  action: Action;
  turnId: string;
  label: string;
}

/** One message as it should look. Markdown, already neutralised and within `limits`. */
export interface Draft {
  markdown: string;
  /** While it streams: the text as it came, with what is open left open, so that the next draft most often adds to it. */
  source?: string;
  /** What is done besides writing, in the order it began; none where the platform shows none. */
  steps?: readonly Step[];
  buttons: Button[];
  /** More text is coming: the platform may show that in its own way. */
  streaming: boolean;
}

/** One thing that is done on the way to an answer, such as a call of a tool. Its id is unique within the reply. */
export interface Step {
  id: string;
  /** In a few plain words, such as "looking up the time in Tokyo". Untrusted text. */
  title: string;
  state: "running" | "done" | "failed";
}

export interface OutboundFile {
  name: string;
  contentType: string;
  bytes: Uint8Array;
  /** What it shows, for those who cannot see it. */
  altText?: string;
  /** Covered until somebody wants to see it, where the platform can do that. */
  isSpoiler?: boolean;
}

export interface SinkLimits {
  /** Longest message, in the unit that `lengthOf` counts. */
  maxLength: number;
  lengthOf(text: string): number;
  keptLength?: number; // As `SplitLimits` has it.
  maxFiles: number;
  maxFileBytes: number;
  /** A reply that needs more messages than this shows so many of them and comes whole as a file; absent: no limit. */
  maxMessages?: number;
}

/** What the platform said with a call it accepted. */
export interface Receipt {
  /** The message does not show the whole draft yet: it is to be written again. */
  isPartial?: boolean;
  /** Its counter behind `ReplySink.budget`, where it tells: calls a window allows, calls left, until it is full again. */
  budget?: { limit: number; remaining: number; resetAfterMs: number };
}

export interface Posted extends Receipt {
  /** `{platform}:…` */
  id: string;
  /** Of an upload: its files in order, as `openAttachment` opens them. */
  attachments?: AttachmentRef[];
}

/** A message that stood in a place before the bot was asked there. */
export interface EarlierMessage {
  messageId: string;
  author: Author;
  text: string;
  attachments: AttachmentRef[];
  /** Unix milliseconds. */
  at: number;
}

/** A second way of writing with limits of its own, for when the first has no room or is not offered. Never left again. */
export interface SpareWay {
  readonly isTaken: boolean;
  take(): void;
}

/** Writes one reply. One call in flight per message. A rate limit is a `SinkError`, never a sleep inside. */
export interface ReplySink {
  readonly limits: SinkLimits;
  /** Names the rate-limit bucket that this reply's edits share with others. */
  readonly budget: string;
  /** Names the place whose limit on posts this reply shares with others, where the platform has one; absent: it is alone. */
  readonly room?: string;
  /** Absent where there is one way of writing. Taken by the core before a post, and by the sink in any call. */
  readonly spare?: SpareWay;
  /** The steps of a draft are shown beside its text, except where it is written the spare way. */
  readonly showsSteps?: boolean;
  readonly takesFeedback?: boolean; // Buttons for `good` and `bad` are shown under a complete answer.
  /** Posts a message. The same nonce never makes a second message: its post resolves to the first one. */
  post(draft: Draft, nonce: string, signal: AbortSignal): Promise<Posted>;
  /** The same for a nonce that no earlier run can have posted with; absent where that makes no difference. */
  postAnew?(draft: Draft, nonce: string, signal: AbortSignal): Promise<Posted>;
  edit(id: string, draft: Draft, signal: AbortSignal): Promise<Receipt>;
  /** Posts files as one message, under a caption where one is given. The same nonce never makes a second message. */
  upload(files: OutboundFile[], caption: Draft | undefined, nonce: string, signal: AbortSignal): Promise<Posted>;
  /** Takes a message of ours back. Resolves also when it is gone already. */
  remove(id: string, signal: AbortSignal): Promise<void>;
  readonly tellsWaits?: boolean; // A wait that lasts is told in the reply, with Stop: `progress` cannot show both.
  /** Shows what is being done before there is text, with `stop` where the platform can; "" takes it away. Best effort. */
  progress(text: string, signal: AbortSignal, stop?: Button): Promise<void>;
}

export interface Adapter {
  readonly platform: string;
  /** Starts delivery. Resolves when the platform is connected; `accept` is called from then on. */
  listen(accept: Accept): Promise<void>;
  /** Works in a process that never listened. */
  sink(address: ReplyAddress): ReplySink;
  /** Bytes of an attachment. Works in a process that never listened. Rejects when it is gone. */
  openAttachment(ref: AttachmentRef, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  /** A link for the next fifteen minutes and longer. Absent where a token is needed. Rejects when the file is gone. */
  publicUrl?(ref: AttachmentRef, signal: AbortSignal): Promise<string>;
  /**
   * What people said in the same thread before this message, oldest first, as far as a bot may read it; empty where the
   * message began the place. Absent on platforms without such places. Best effort: a rejection means it is not known.
   */
  readEarlier?(event: MessageEvent, signal: AbortSignal): Promise<EarlierMessage[]>;
  isConnected(): boolean;
  /** Erases what the adapter itself keeps about a person; absent where messages live elsewhere. */
  forget?(authorId: string): Promise<void>;
  /** The same for a conversation as it stood before `at`, Unix milliseconds: of one person, or all where none is given. */
  forgetConversation?(conversationId: string, authorId: string | undefined, at: number): Promise<void>;
  /** Stops delivery. Replies may still be written. */
  pause(): Promise<void>;
  /** Ends everything. */
  close(): Promise<void>;
}
