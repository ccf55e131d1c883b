export interface Author {
  /**
   * Unique within the platform. If the platform's own id is unique only within a workspace, the workspace is a part of
   * it.
   */
  id: string;
  /** As shown to people. Untrusted text. */
  name: string;
  /** Can press buttons and give commands on behalf of others; absent: no. */
  isModerator?: boolean;
  /**
   * Can change the settings of the channel, and erase its conversations for everyone. Absent means yes, as in a direct
   * conversation: an adapter that omits it elsewhere gives everyone that right.
   */
  mayConfigure?: boolean;
  /** The person's status in the place; absent: a member. An `external` person belongs to another organization. */
  kind?: "member" | "guest" | "external" | "bot";
  /** Ids of the person's groups or roles on the platform, limited to those that the policy names. */
  groups?: readonly string[];
  /** Their workspace, if it differs from the place's. */
  workspaceId?: string;
  /** Their IANA time zone, if the platform knows it. */
  timeZone?: string;
}

/** The place of a reply. Plain JSON: every Palaver process can write there, also after a restart. */
export interface ReplyAddress {
  platform: string;
  channelId: string;
  threadId?: string;
  /** The workspace, or server, that the channel is in; absent if the platform has none. */
  workspaceId?: string;
  /** The category of the channel, if the platform has categories. */
  categoryId?: string;
  /** A conversation with one person, or a few, that no one else can join. */
  isDirect?: true;
  /** The message that the reply answers, if the platform shows that. */
  replyToId?: string;
  /** The reply answers no message: its posts come after this time, Unix milliseconds. */
  since?: number;
  /** Only this person, given by an author's id, sees the reply, if the platform supports that. */
  visibleTo?: string;
  /** Only the platform's own adapter reads it. */
  extra?: Readonly<Record<string, string>>;
}

/** An attached file. Each use opens it again, so the history does not store its bytes. */
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
  /**
   * `{platform}:…`, without "~". The place's conversation: the core derives the one of a private question from it
   * (`ids.ts`).
   */
  conversationId: string;
  author: Author;
  reply: ReplyAddress;
  /** The platform's time of the event, Unix milliseconds. */
  at: number;
  /** The lane in which the event waits; absent: its conversation's. Set when the event is accepted. */
  lane?: EventLane;
}

/** A lane is a queue of events that are worked on one after another: those of a conversation, or of an image. */
export interface EventLane {
  id: string;
  /** The model answers a `question`, a `drawing` creates images, and everything else is an `errand`, which is short. */
  kind: "question" | "drawing" | "errand";
  /** The turn or the job that the event starts or continues. */
  workId: string;
}

export interface MessageEvent extends EventBase {
  kind: "message";
  /** Unique over all platforms: `{platform}:…`. */
  messageId: string;
  /** Without the mention of the bot. */
  text: string;
  attachments: AttachmentRef[];
  /** The message that this one replies to and belongs with. Later messages there are another branch. */
  inReplyTo?: string;
  /** Id of the message that this one quotes: the model does not see its words twice. */
  quotes?: string;
  /**
   * `bot`: a mention or a direct message, always answered. `open`: addressed to no one, answered while the bot follows
   * the conversation. `other`: addressed to another person, never answered, and the bot stops following until it is
   * addressed again.
   */
  addressed: "bot" | "open" | "other";
  /** The platform reserves a place for the answer to this one alone, as for a slash command. */
  isAnsweredAlone?: true;
  /** The message addresses no one: the bot answers everything in this channel. */
  isListenedTo?: true;
  /** A run of a schedule: no person has just written it, and the platform has no such message. */
  scheduled?: ScheduledRun;
  /** The text was longer than any platform allows; its middle was removed when it was accepted. */
  isCut?: true;
}

/** One run of a schedule. */
export interface ScheduledRun {
  /** The schedule. */
  id: string;
  /** Unix milliseconds. */
  dueAt: number;
  /** The same in words, with the time zone. */
  when: string;
  /** A sentence for people under the answer. */
  notice?: string;
  /** It is too late to do it: people are only told so. */
  isMissed?: true;
  /** The schedule recurs, so it has buttons under each answer. */
  recurs?: true;
}

/** A person changed a message. Text and attachments are complete, not a difference. */
export interface EditedEvent extends EventBase {
  kind: "edited";
  messageId: string;
  text: string;
  attachments: AttachmentRef[];
  /** The edit turned it into a message to the bot: it is answered if it was not before. */
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
  /**
   * The values of the platform's own fields, by name: `ImagineOptions` in `catalogue.ts`, or `persona` and `prompts`.
   */
  options?: Readonly<Record<string, string>>;
  /** The command was written as a message: the platform reserves no place for its answer. */
  isSpoken?: true;
}

/** A stop that a person writes instead of pressing: it stops the answer that is being written in its conversation. */
export function isSpokenStop(event: InboundEvent): event is CommandEvent {
  return event.kind === "command" && event.name === "stop";
}

/** The effect of a button; `ActionEvent.turnId` names its object. */
export const ACTIONS = [
  // A turn: stop it, retry it after a failure, continue its answer.
  "stop",
  "retry",
  "continue",
  // A complete answer: request another one, return to an earlier one, explain what the model was given for it.
  "regenerate",
  "show",
  "explain",
  // Calls of tools: decide about those that wait for a person, or repeat those that may not have run.
  "approve",
  "always",
  "deny",
  "rerun",
  // An answer: rate it.
  "good",
  "bad",
  // An image; `delete` removes an answer as well.
  "again",
  "vary",
  "edit",
  "upscale",
  "delete",
  // A schedule: confirm it, change it, delete it, let it rest, let it go on.
  "schedule",
  "reschedule",
  "unschedule",
  "pause",
  "resume",
] as const;

export type Action = (typeof ACTIONS)[number];

/** Longest reason that its form accepts, in UTF-16 units. */
export const MAX_REASON_CHARS = 500;

const ANEW: ReadonlySet<Action> = new Set(["retry", "regenerate", "approve", "always", "deny", "rerun"]);

/** True for a press that continues a finished turn, or asks its question again. */
export function asksAnew(event: InboundEvent): event is ActionEvent {
  return event.kind === "action" && ANEW.has(event.action);
}

export type PressedAction = Exclude<Action, "edit">;

/** A person pressed a button. For `edit` the platform opens its form, which is sent as a command. */
export interface ActionEvent extends EventBase {
  kind: "action";
  action: PressedAction;
  /** Names the button's object: a turn, one of its answers, some of its calls, or an image. See `ids.ts`. */
  turnId: string;
  /** Why an answer is `bad`, in the person's words, from the form that a press opens. */
  reason?: string;
  /** It comes from an edit of the question instead of a press: the platform reserves no place for a notice about it. */
  isSpoken?: true;
}

export type InboundEvent = MessageEvent | EditedEvent | DeletedEvent | CommandEvent | ActionEvent;

/**
 * Resolves when the event is durable: only then may the adapter acknowledge it to the platform. Rejects if it was not
 * stored.
 */
export type Accept = (event: InboundEvent) => Promise<void>;

/** A message from before the bot was asked in this place. */
export interface EarlierMessage {
  messageId: string;
  author: Author;
  /** Includes cards, polls and other contents, as text. */
  text: string;
  attachments: AttachmentRef[];
  /** Unix milliseconds. */
  at: number;
  /** Written by another app, or by this bot; absent: by a person. */
  by?: "app" | "bot";
  /** The first message of the thread. */
  isRoot?: true;
}

/** Messages of a thread, oldest first. */
export interface Earlier {
  messages: EarlierMessage[];
  /** The platform or the time limit did not allow reading all of it. */
  isPartial?: true;
}

export interface EarlierRange {
  /** Only messages from this time on, in Unix milliseconds; absent: all, including the thread's first message. */
  since?: number;
  /** Most messages to return, the newest ones, not counting the thread's first message. */
  maxMessages: number;
}

/** A request to the platform's own search. */
export interface SearchRequest {
  /** At most 500 characters. */
  words: string;
  /** `SearchPage.next` of the page before; absent: the first page. */
  cursor?: string;
}

/** A message that the platform's search found. The platform may find more than the asker can read. */
export interface SearchHit {
  messageId: string;
  /** The place, as an id that `mayShow` understands. */
  placeId: string;
  /** Untrusted text. */
  placeName: string;
  /** Untrusted text. */
  authorName: string;
  /** Untrusted text. */
  text: string;
  /** Unix milliseconds. */
  at: number;
  /** Leads people to the message. */
  link: string;
}

/** Best hits first. */
export interface SearchPage {
  hits: SearchHit[];
  /** Absent: there are no more. */
  next?: string;
}

/** A place whose messages a person can catch up on. */
export interface ReadablePlace {
  /** An id that `mayShow` understands. */
  id: string;
  /** Untrusted text. */
  name: string;
}

export interface RecentRange {
  /** Only messages from this time on, in Unix milliseconds. */
  since: number;
  /** Only messages before this time, in Unix milliseconds. */
  until: number;
  /** Messages before the asker's newest one are not needed. */
  fromOwn: boolean;
  /** Most messages of the channel itself, and of each thread; the newest ones. */
  maxMessages: number;
}

/** A message that a person may have missed. */
export interface RecentMessage extends Pick<EarlierMessage, "messageId" | "author" | "text" | "at" | "by"> {
  /** Leads people to the message. */
  link: string;
  /** The thread that it is in; its first message may have it too. */
  threadId?: string;
  /** It mentions the asker, or replies to them. */
  concernsAsker?: true;
}

/** Messages of a channel and its threads. */
export interface Recent {
  messages: RecentMessage[];
  /** A sentence for people that says why messages are missing. */
  gap?: string;
}
