import type { Logger } from "pino";
import type {
  Actor,
  CommandHelp,
  ImagineMenu,
  IsListening,
  ListModels,
  ReadPersona,
  ScheduleForm,
} from "./catalogue.ts";
import type {
  Accept,
  AttachmentRef,
  Author,
  Earlier,
  EarlierMessage,
  EarlierRange,
  InboundEvent,
  MessageEvent,
  ReadablePlace,
  Recent,
  RecentRange,
  ReplyAddress,
  SearchPage,
  SearchRequest,
} from "./events.ts";
import type { Right } from "./right.ts";
import type { ReplySink } from "./sink.ts";

/**
 * The port between the core and a platform. Another process can resume the work on an event, also after a crash, so
 * events and addresses are plain JSON: the core writes a reply to an address, never to a live SDK object. Drafts, files
 * and signals stay within one process. The core branches only on rejections that are a `SinkError` or a
 * `SearchProblem`.
 * A "place" is a channel, or one of its threads. "Best effort" means that a method can reject; the core then continues
 * without its result.
 */

/** A place's names as the platform shows them. They contain no person's name and no message text. */
export interface PlaceNames {
  /** Undefined if the platform does not report the name. */
  channel?: string | undefined;
  workspace?: string | undefined;
  /** True if the channel belongs to one person and the bot. */
  isDirect?: boolean;
}

/** Selects the data to erase: one author's or everyone's, in one conversation or in all. */
export interface ForgetScope {
  authorId?: string | undefined;
  /** Erases only data that is older than `before`, in Unix milliseconds. */
  conversation?: { id: string; before: number };
}

export interface Adapter {
  readonly platform: string;
  /** Set if the platform stores its messages on this process's disk, so that no other process can write them. */
  readonly isOwn?: true;
  /**
   * Starts delivery. Resolves when the platform is connected; from then on the adapter calls `accept` for each event.
   * It calls `notifyDelayed` for an event that must wait because an earlier one cannot be stored; if that event is a
   * command, the core notifies its author.
   */
  listen(accept: Accept, notifyDelayed?: (event: InboundEvent) => void): Promise<void>;
  /** Opens a sink, also in a process that never listened. The sink checks the right before each write. */
  sink(address: ReplyAddress, right: Right): ReplySink;
  /** Streams an attachment's bytes, also in a process that never listened. Rejects if the file is gone. */
  openAttachment(ref: AttachmentRef, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  /**
   * Returns a link that works for at least fifteen minutes. Rejects if the file is gone. Absent if files need a token.
   */
  publicUrl?(ref: AttachmentRef, signal: AbortSignal): Promise<string>;
  /**
   * Reads the messages before this message in its thread, if the bot can see them. Leaves out the bot's own messages if
   * `range.since` is set. Absent on platforms without threads. Best effort.
   */
  readEarlier?(event: MessageEvent, range: EarlierRange, signal: AbortSignal): Promise<Earlier>;
  /**
   * Reads the last messages of a channel, oldest first. It reads those before the first of `messageIds` that is in the
   * channel itself, and returns nothing if none of `messageIds` is. For a DM, it reads the channel that the person has
   * open next to the DM, if `mayShow` allows that, and returns nothing if the platform does not report such a channel.
   * Absent on platforms without channels. Best effort.
   */
  readChannel?(
    reply: ReplyAddress,
    messageIds: readonly string[],
    maxMessages: number,
    signal: AbortSignal,
  ): Promise<EarlierMessage[]>;
  /**
   * Shows one person a notice that no one else sees, after an ordinary message of that person. A repeated nonce shows
   * no second notice. Absent if a sink can do the same with `visibleTo`. Best effort.
   */
  notifyPrivately?(
    reply: ReplyAddress,
    authorId: string,
    markdown: string,
    nonce: string,
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Looks up a person as the author of an event in this place. Undefined if no one has this id. Rejects if the platform
   * does not answer. Absent: the core knows only the person's id.
   */
  findAuthor?(authorId: string, place: ReplyAddress, signal: AbortSignal): Promise<Author | undefined>;
  /**
   * True if the person is still in this place and the bot can write there. If false, work that the person requested
   * earlier stops. Rejects if the platform does not answer. Absent: always true.
   */
  isThere?(authorId: string, place: ReplyAddress, signal: AbortSignal): Promise<boolean>;
  /** Looks up a place's names for the operator's dashboard. Absent if the platform's places have none. Best effort. */
  namePlace?(place: Pick<ReplyAddress, "channelId" | "workspaceId">, signal: AbortSignal): Promise<PlaceNames>;
  /**
   * True if this person, and everyone who reads the answer, can read a message or a conversation. `id` is a `messageId`
   * or a `conversationId`. False if the platform does not know. Absent: the bot shows nothing from other places. Looks
   * up all permissions again for each new signal, so that a lost permission takes effect at once.
   */
  mayShow?(id: string, to: Actor, signal: AbortSignal): Promise<boolean>;
  /**
   * Reads a linked message with its thread, or with its neighbours, oldest first. Undefined if the link belongs to
   * another platform, or if `mayShow` refuses the message. Absent on platforms without links.
   */
  readLinked?(link: string, maxMessages: number, to: Actor, signal: AbortSignal): Promise<EarlierMessage[] | undefined>;
  /**
   * Searches the platform for this person. The core shows a hit only if `mayShow` allows it. Rejects with a
   * `SearchProblem` if the platform cannot search. Absent on platforms without a search.
   */
  search?(request: SearchRequest, by: Actor, signal: AbortSignal): Promise<SearchPage>;
  /**
   * Lists the question's channel, or all channels that both the asker and the bot are in. Channels with the newest
   * messages come first, if the platform reports that order. The core reads only channels that `mayShow` allows. Empty
   * for a DM. Rejects with a `SearchProblem` if the platform cannot list channels. Absent on platforms without
   * channels.
   */
  listReadable?(which: "here" | "all", to: Actor, signal: AbortSignal): Promise<ReadablePlace[]>;
  /**
   * Reads what people and apps wrote in a listed channel and its threads, newest first, up to the platform's limits.
   * Leaves out private threads that the asker cannot open. Rejects with a `SearchProblem` if the bot cannot read the
   * channel. Exists if `listReadable` exists.
   */
  readRecent?(placeId: string, range: RecentRange, to: Actor, signal: AbortSignal): Promise<Recent>;
  /** True while the platform delivers events to this process. `/readyz` reports it. */
  isConnected(): boolean;
  /** Erases the data that the adapter itself stores. Absent if the platform stores the messages. */
  forget?(which: ForgetScope): Promise<void>;
  /**
   * Stops delivery; replies can still be written. First hands this process's connections to other processes, waiting
   * for at most `handOverMs`. Without `handOverMs`, it does not wait.
   */
  pause(handOverMs?: number): Promise<void>;
  /** Called once, after `pause`. Afterwards the adapter writes nothing and keeps nothing running. */
  close(): Promise<void>;
}

/** The options that the core gives to every adapter except its own page and terminal. */
export interface AdapterOptions {
  commands: readonly CommandHelp[];
  listModels: ListModels;
  /** Absent: the persona form starts empty and suggests the default prompts. */
  readPersona?: ReadPersona | undefined;
  /** Absent: a schedule has no form, and its buttons answer with a command to copy. */
  scheduleForm?: ScheduleForm | undefined;
  /** Absent: the bot listens to no channel. */
  isListening?: IsListening | undefined;
  /** Reads the ids of the groups and roles in the policy. The adapter looks up their members. Absent: no groups. */
  namedGroups?: (() => Promise<readonly string[]>) | undefined;
  /** Absent: images are off. */
  imagine?: ImagineMenu | undefined;
  log: Logger;
  /** Reports that the platform will never accept this bot again. Called at most once. `reason` is in plain words. */
  onFatal(reason: string): void;
  /** Unix milliseconds. */
  now(): number;
}
