export interface Author {
  /** Unique within the platform. Contains the workspace if the platform's own id is unique only within a workspace. */
  id: string;
  /** Untrusted text. */
  name: string;
  /** True if the person can press buttons and give commands for other people's answers. */
  isModerator?: boolean;
  /**
   * True if the person can change the channel's settings and erase its conversations for everyone. Absent means true,
   * as in a direct conversation, so the adapter must set this everywhere else.
   */
  mayConfigure?: boolean;
  /** The person's status in the place; absent: a member. An `external` person belongs to another organization. */
  kind?: "member" | "guest" | "external" | "bot";
  /** Ids of the person's groups and roles, but only of those that the policy names. */
  groups?: readonly string[];
  /** The person's workspace, if it differs from the workspace of the reply. */
  workspaceId?: string;
  /** The person's IANA time zone, if the platform knows it. */
  timeZone?: string;
}

/** The address of a reply. Plain JSON: every Palaver process can write there, also after a restart. */
export interface ReplyAddress {
  platform: string;
  channelId: string;
  threadId?: string;
  /** The workspace, or server, of the channel; absent on platforms without workspaces. */
  workspaceId?: string;
  /** The category of the channel, on platforms with categories. */
  categoryId?: string;
  /** Set for a conversation between the bot and one person, or a few people, that no one else can join. */
  isDirect?: true;
  /** The message that the reply answers, if the platform shows that connection. */
  replyToId?: string;
  /** Set if the reply answers no message: all posts of the reply are newer than this time, in Unix milliseconds. */
  since?: number;
  /** The id of the only person who sees the reply, on platforms with such replies. */
  visibleTo?: string;
  /** Data that only the platform's own adapter reads. */
  extra?: Readonly<Record<string, string>>;
}

/** An attached file. Each use opens the file again, so the history does not store its bytes. */
export interface AttachmentRef {
  platform: string;
  /** `openAttachment` finds the file by this id. */
  id: string;
  /** Untrusted text. */
  name: string;
  sizeBytes: number;
  /** Set if the file's address expires at an unspecified time. */
  isFleeting?: true;
}

export interface EventBase {
  /** Unique per platform event. The queue claims the key and drops a second delivery. */
  key: string;
  /** `{platform}:…`, without "~". Names the place's conversation, from which `ids.ts` derives private conversations. */
  conversationId: string;
  author: Author;
  reply: ReplyAddress;
  /** When the event happened on the platform, in Unix milliseconds. */
  at: number;
  /** The lane in which the event waits; absent: its conversation's lane. The core sets it when it accepts the event. */
  lane?: EventLane;
}

/** A lane is a queue whose events run one after another: the events of a conversation, or of an image. */
export interface EventLane {
  id: string;
  /** `question`: the model answers. `drawing`: the bot creates images. `errand`: any other work, which is short. */
  kind: "question" | "drawing" | "errand";
  /** The id of the turn or job that the event starts or continues. */
  workId: string;
}

export interface MessageEvent extends EventBase {
  kind: "message";
  /** Unique over all platforms: `{platform}:…`. */
  messageId: string;
  /** The text without the mention of the bot. */
  text: string;
  attachments: AttachmentRef[];
  /** The message that this message replies to and continues. Messages between the two form another branch. */
  inReplyTo?: string;
  /** The id of the message that this message quotes. The model sees the quoted words only once. */
  quotes?: string;
  /**
   * `bot`: a mention or a direct message; the bot always answers. `open`: addressed to no one; the bot answers while it
   * follows the conversation. `other`: addressed to another person; the bot does not answer, and stops following until
   * someone addresses it again.
   */
  addressed: "bot" | "open" | "other";
  /** Set if the platform keeps a reply open for this message, as for a slash command. The bot answers it separately. */
  isAnsweredAlone?: true;
  /** Set if the message addresses no one, but the bot answers every message of this channel. */
  isListenedTo?: true;
  /** Set for a run of a schedule. No person has just written this message, and the platform has no such message. */
  scheduled?: ScheduledRun;
  /** Set if the text was longer than any platform allows, so the core removed its middle on arrival. */
  isCut?: true;
}

export interface ScheduledRun {
  id: string;
  /** Unix milliseconds. */
  dueAt: number;
  /** `dueAt` in words, with the time zone. */
  when: string;
  /** A sentence that people see under the answer. */
  notice?: string;
  /** Set if the run is too late: the bot then only reports that it did not run. */
  isMissed?: true;
  /** Set if the schedule recurs: each answer then has buttons for the schedule. */
  recurs?: true;
}

/** A person changed a message. The event has the complete new text and all attachments. */
export interface EditedEvent extends EventBase {
  kind: "edited";
  messageId: string;
  text: string;
  attachments: AttachmentRef[];
  /** Set if the edit addressed the message to the bot. The bot answers the message, unless it did so before. */
  addressed?: "bot";
}

export interface DeletedEvent extends EventBase {
  kind: "deleted";
  messageId: string;
}

export interface CommandEvent extends EventBase {
  kind: "command";
  /** The name without the slash. */
  name: string;
  text: string;
  attachments?: AttachmentRef[];
  /** The form's values by field: the fields of `ImagineOptions` in `catalogue.ts`, or `persona` and `prompts`. */
  options?: Readonly<Record<string, string>>;
  /** Set if a person wrote the command as a message, so the platform keeps no reply open for it. */
  isSpoken?: true;
}

/** True for a written "stop", which stops the answer that the bot is writing in this conversation. */
export function isSpokenStop(event: InboundEvent): event is CommandEvent {
  return event.kind === "command" && event.name === "stop";
}

/** The effects of buttons. `ActionEvent.turnId` names the object that the button acts on. */
export const ACTIONS = [
  // On a turn: stop it, retry it after a failure, continue its answer.
  "stop",
  "retry",
  "continue",
  // On a complete answer: request another one, return to an earlier one, explain what the model got for it.
  "regenerate",
  "show",
  "explain",
  // On tool calls: decide about calls that wait for a person, or repeat calls that perhaps did not run.
  "approve",
  "always",
  "deny",
  "rerun",
  // On an answer: rate it.
  "good",
  "bad",
  // On an image. `delete` also removes an answer.
  "again",
  "vary",
  "edit",
  "upscale",
  "delete",
  // On a schedule: confirm it, change it, delete it, pause it, resume it.
  "schedule",
  "reschedule",
  "unschedule",
  "pause",
  "resume",
] as const;

export type Action = (typeof ACTIONS)[number];

/** The longest reason that the rating form accepts, in UTF-16 units. */
export const MAX_REASON_CHARS = 500;

/** The fields in a schedule's form: when, and what to do then. Both contain text that people write. */
export type ScheduleFields = Record<"time" | "task", string>;

/** Longest texts in these fields, in UTF-16 units. No platform with forms accepts fewer. */
export const MAX_SCHEDULE_CHARS: Readonly<Record<keyof ScheduleFields, number>> = { time: 200, task: 3_000 };

const ANEW: ReadonlySet<Action> = new Set(["retry", "regenerate", "approve", "always", "deny", "rerun"]);

/** True for a press that continues a finished turn, or that asks its question again. */
export function asksAnew(event: InboundEvent): event is ActionEvent {
  return event.kind === "action" && ANEW.has(event.action);
}

export type PressedAction = Exclude<Action, "edit">;

/** A person pressed a button. There is no event for `edit`: the platform opens a form and sends it as a command. */
export interface ActionEvent extends EventBase {
  kind: "action";
  action: PressedAction;
  /** The id of the button's object: a turn, one of its answers, some of its calls, or an image. See `ids.ts`. */
  turnId: string;
  /** Why an answer is `bad`, in the person's words, from the rating form. */
  reason?: string;
  /** The new version of a schedule, from the form that `reschedule` opens; absent on platforms without forms. */
  fields?: ScheduleFields;
  /** It comes from an edit of the question instead of a press: the platform reserves no place for a notice about it. */
  isSpoken?: true;
}

export type InboundEvent = MessageEvent | EditedEvent | DeletedEvent | CommandEvent | ActionEvent;

/** Resolves once the event is durable; only then may the adapter acknowledge it. Rejects if it was not stored. */
export type Accept = (event: InboundEvent) => Promise<void>;

/** A message that someone wrote in the place before anyone asked the bot. */
export interface EarlierMessage {
  messageId: string;
  author: Author;
  /** The text, including cards, polls and other contents. */
  text: string;
  attachments: AttachmentRef[];
  /** Unix milliseconds. */
  at: number;
  /** The author's kind, if it is another app or this bot. Absent: a person. */
  by?: "app" | "bot";
  /** Set for the first message of the thread. */
  isRoot?: true;
}

/** Messages of a thread, oldest first. */
export interface Earlier {
  messages: EarlierMessage[];
  /** Set if the platform's limits or the time limit prevented reading all messages. */
  isPartial?: true;
}

export interface EarlierRange {
  /** Only messages from this time on, in Unix milliseconds. Absent: all messages, including the thread's first. */
  since?: number;
  /** At most this many of the newest messages, in addition to the thread's first message. */
  maxMessages: number;
}

export interface SearchRequest {
  /** At most 500 characters. */
  words: string;
  /** `SearchPage.next` of the previous page; absent: the first page. */
  cursor?: string;
}

/** A message that the platform's search found. The asker perhaps cannot read it. Names and text are untrusted. */
export interface SearchHit {
  messageId: string;
  /** The id of the message's place; `mayShow` accepts it. */
  placeId: string;
  placeName: string;
  authorName: string;
  text: string;
  /** Unix milliseconds. */
  at: number;
  link: string;
}

/** A page of search results, best hits first. */
export interface SearchPage {
  hits: SearchHit[];
  /** The cursor of the next page; absent on the last page. */
  next?: string;
}

/** A channel whose messages a person can catch up on. */
export interface ReadablePlace {
  /** `mayShow` accepts this id. */
  id: string;
  /** Untrusted text. */
  name: string;
  channelId: string;
  /** The category of the channel, if it has one. */
  categoryId?: string;
}

export interface RecentRange {
  /** Only messages from this time on, in Unix milliseconds. */
  since: number;
  /** Only messages before this time, in Unix milliseconds. */
  until: number;
  /** True if the asker's newest message can end the reading. */
  fromOwn: boolean;
  /** The reading of the channel itself, and of each thread, ends at about as many messages. */
  maxMessages: number;
}

/** A message that a person can have missed. */
export interface RecentMessage extends Pick<EarlierMessage, "messageId" | "author" | "text" | "at" | "by"> {
  link: string;
  /** The thread that it is in; its first message can have it too. */
  threadId?: string;
  /** The private thread that it is in, as an id that `mayShow` understands. */
  privateId?: string;
  /** It mentions the asker, or replies to them. */
  concernsAsker?: true;
}

export interface Recent {
  messages: RecentMessage[];
  /** Sentences for people that say which messages are missing, and why. They name no channel. */
  gaps: readonly string[];
}
