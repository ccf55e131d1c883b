export interface Author {
  /** Unique within the platform: where its own id names somebody in one workspace alone, with that workspace. */
  id: string;
  /** Older things of theirs are kept under this id, see `KnownAs` in identity.ts. */
  former?: { id: string; within?: string };
  /** As shown to people. Untrusted text. */
  name: string;
  /** May press buttons and give commands on behalf of others; absent: no. */
  isModerator?: boolean;
  /**
   * May change the settings of the channel, and erase its conversations for all. Absent means yes, as in a direct
   * conversation: an adapter that leaves it out elsewhere gives everybody that right.
   */
  mayConfigure?: boolean;
  /** The person's standing in the place; absent: a member. An `external` person belongs to another organisation. */
  kind?: "member" | "guest" | "external" | "bot";
  /** Ids of the platform's groups or roles that they are in, as far as the policy asks for them. */
  groups?: readonly string[];
  /** The workspace that they are of, where that is another one than the place's. */
  workspaceId?: string;
}

/** The place of a reply. Plain JSON: any process of ours can write there, also after a restart. */
export interface ReplyAddress {
  platform: string;
  channelId: string;
  threadId?: string;
  /** The workspace, or server, that the channel is in; absent where there is none. */
  workspaceId?: string;
  /** The category that the channel is in, where the platform has such. */
  categoryId?: string;
  /** A conversation with one person, or a few, that nobody else can join. */
  isDirect?: true;
  /** The message the reply answers, where the platform shows that. */
  replyToId?: string;
  /** Only this person, an author's id, sees the reply, where the platform can do that. */
  visibleTo?: string;
  /** Read by the platform's own adapter only. */
  extra?: Readonly<Record<string, string>>;
}

/** A file somebody attached. It is opened again each time it is needed, so its bytes are not kept in the history. */
export interface AttachmentRef {
  platform: string;
  /** Lets `openAttachment` find it again. */
  id: string;
  /** Untrusted text. */
  name: string;
  sizeBytes: number;
  /** The address expires at an unspecified time. */
  isFleeting?: true;
}

/** The fields that all events have. */
export interface EventBase {
  /** Unique per platform event. The queue claims it: a second delivery of the same key is dropped. */
  key: string;
  /** `{platform}:…`, without "~". The place's conversation: the core derives that of a private question (`ids.ts`). */
  conversationId: string;
  author: Author;
  reply: ReplyAddress;
  /** The platform's time of the event, Unix milliseconds. */
  at: number;
  /** The lane in which the event waits; absent: its conversation's. Set when the event is taken in. */
  lane?: EventLane;
}

/** A lane is a queue of events that are worked on one after another: a conversation's, or one for pictures. */
export interface EventLane {
  id: string;
  /** A `question` is answered by a model, a `drawing` draws pictures, and an `errand` is everything else, which is short. */
  kind: "question" | "drawing" | "errand";
  /** The turn or the job that the event begins or continues. */
  workId: string;
}

export interface MessageEvent extends EventBase {
  kind: "message";
  /** Unique over all platforms: `{platform}:…`. */
  messageId: string;
  /** Without the mention of the bot that addressed it. */
  text: string;
  attachments: AttachmentRef[];
  /** The message this one replies to, and belongs with. Later messages there are another branch. */
  inReplyTo?: string;
  /** Id of the message whose words stand in this one as a quotation: it is not shown to the model a second time. */
  quotes?: string;
  /**
   * `bot`: a mention or a direct message, always answered. `open`: nobody in particular, answered while the bot follows
   * the conversation. `other`: somebody else, never answered, and the bot stops following until it is addressed again.
   */
  addressed: "bot" | "open" | "other";
  /** The platform keeps a place for the answer to this one alone, as for a slash command's. */
  isAnsweredAlone?: true;
  /** The message is addressed to nobody: the bot answers everything in the channel. */
  isListenedTo?: true;
  /** The text was longer than any platform lets people write; its middle was left out when it was accepted. */
  isCut?: true;
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
  /** The values of the platform's own fields, by their names: `ImagineOptions` in `catalogue.ts`, or `persona` and `prompts`. */
  options?: Readonly<Record<string, string>>;
  /** The command was written as a message: the platform holds no place open for its answer. */
  isSpoken?: true;
}

/** A stop that a person says rather than presses: it is meant for the answer that is written in its conversation. */
export function isSpokenStop(event: InboundEvent): event is CommandEvent {
  return event.kind === "command" && event.name === "stop";
}

/** The effect of a button; `ActionEvent.turnId` names its object. */
export const ACTIONS = [
  // A turn: ends it, tries it again after it failed, lets its answer go on.
  "stop",
  "retry",
  "continue",
  // An answer that is whole: asks for another one, brings one of several back, tells what the model was given for it.
  "regenerate",
  "show",
  "explain",
  // Calls of tools: decide about those that wait for a person, or make those once more that may not have been made.
  "approve",
  "always",
  "deny",
  "rerun",
  // An answer: judge it.
  "good",
  "bad",
  // A picture; `delete` takes back an answer as well.
  "again",
  "vary",
  "edit",
  "upscale",
  "delete",
] as const;

export type Action = (typeof ACTIONS)[number];

/** Longest reason that the form for one takes, in UTF-16 units. */
export const MAX_REASON_CHARS = 500;

const ANEW: ReadonlySet<Action> = new Set(["retry", "regenerate", "approve", "always", "deny", "rerun"]);

/** True for a press that lets a turn which has ended go on, or has its question answered once more. */
export function asksAnew(event: InboundEvent): event is ActionEvent {
  return event.kind === "action" && ANEW.has(event.action);
}

export type PressedAction = Exclude<Action, "edit">;

/** A button was pressed. For `edit` the platform opens its form, and what is sent with that is a command. */
export interface ActionEvent extends EventBase {
  kind: "action";
  action: PressedAction;
  /** Names the object of the button: a turn, one of its answers, some of its calls, or a picture. See `ids.ts`. */
  turnId: string;
  /** Why an answer is `bad`, in the judge's words: sent with the form that a press opens. */
  reason?: string;
  /**
   * It comes from an edit of the question instead of a press: the platform holds no place open for what is said about
   * it.
   */
  isSpoken?: true;
}

export type InboundEvent = MessageEvent | EditedEvent | DeletedEvent | CommandEvent | ActionEvent;

/** Resolves when the event is durable: only then may the platform be acknowledged. Rejects if it was not stored. */
export type Accept = (event: InboundEvent) => Promise<void>;

/** A message that stood in a place before the bot was asked there. */
export interface EarlierMessage {
  messageId: string;
  author: Author;
  /** Cards, polls and what else it shows included, as text. */
  text: string;
  attachments: AttachmentRef[];
  /** Unix milliseconds. */
  at: number;
  /** Written by another app, or by this bot; absent: by a person. */
  by?: "app" | "bot";
  /** The thread began with it. */
  isRoot?: true;
}

/** Messages of a thread, oldest first. */
export interface Earlier {
  messages: EarlierMessage[];
  /** The platform, or the time, did not allow to read all of it. */
  isPartial?: true;
}

export interface EarlierRange {
  /** Only what was written from then on, Unix milliseconds; absent: everything, with what the thread began with. */
  since?: number;
  /** At most this many, the newest, beside what the thread began with. */
  maxMessages: number;
}
