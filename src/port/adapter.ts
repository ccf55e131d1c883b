import type { Logger } from "pino";
import type { Actor, CommandHelp, ImagineMenu, IsListening, ListModels, ReadPersona } from "./catalogue.ts";
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
 * The port: the core's requests to a platform, and a platform's reports to the core. The work on an event may need
 * several attempts: if one fails, is aborted or dies with its process, a later one continues from its result. Another
 * process may make it, so events and addresses are plain JSON: a reply is written to an address, never to a live SDK
 * object. Drafts, files and signals stay within one process. Rejections that the core branches on are `SinkError`s.
 * "Best effort": can reject; the core then continues without.
 */

/** Names as the platform shows them. They hold no person's name and no words of a conversation. */
export interface PlaceNames {
  /** Absent if the platform does not report it. */
  channel?: string | undefined;
  workspace?: string | undefined;
  /** The channel belongs to one person and the bot. */
  isDirect?: boolean;
}

/** The data to erase: one person's or everyone's; everywhere, or in one conversation up to a time. */
export interface ForgetScope {
  authorId?: string | undefined;
  /** `before` is in Unix milliseconds. */
  conversation?: { id: string; before: number };
}

export interface Adapter {
  readonly platform: string;
  /** Its messages are on this process's disk: no other process can write them. */
  readonly isOwn?: true;
  /**
   * Starts delivery. Resolves when the platform is connected; `accept` is called from then on. `notifyDelayed`
   * is for an event that cannot be given to `accept` yet, because one before it waits for the store: the author of a
   * command gets a notice.
   */
  listen(accept: Accept, notifyDelayed?: (event: InboundEvent) => void): Promise<void>;
  /** Works in a process that never listened. Each write of the sink needs the right. */
  sink(address: ReplyAddress, right: Right): ReplySink;
  /** Bytes of an attachment. Works in a process that never listened. Rejects when it is gone. */
  openAttachment(ref: AttachmentRef, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  /** A link that works for at least fifteen minutes. Absent if files need a token. Rejects if the file is gone. */
  publicUrl?(ref: AttachmentRef, signal: AbortSignal): Promise<string>;
  /**
   * Reads earlier messages of the thread that the bot can see; the bot's own only if all are requested. Absent on
   * platforms without threads. Best effort.
   */
  readEarlier?(event: MessageEvent, range: EarlierRange, signal: AbortSignal): Promise<Earlier>;
  /**
   * Reads a channel's last messages before the first of these messages that is in the channel itself, oldest first, if
   * the bot can see them; empty if none of these is there. In a direct conversation it reads the channel that the
   * person has open next to it, named in the first message, if `mayShow` allows it; empty if the platform reports none.
   * Absent on platforms without channels. Best effort.
   */
  readChannel?(
    reply: ReplyAddress,
    messageIds: readonly string[],
    maxMessages: number,
    signal: AbortSignal,
  ): Promise<EarlierMessage[]>;
  /**
   * Notifies one person who wrote an ordinary message, so that only they see it; once per nonce. Absent if a sink with
   * `visibleTo` can do that. Best effort.
   */
  notifyPrivately?(
    reply: ReplyAddress,
    authorId: string,
    markdown: string,
    nonce: string,
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Looks up a person as the author of an event in this place; undefined if the id belongs to no one. Rejects if the
   * platform does not answer. Absent: only the id counts.
   */
  findAuthor?(authorId: string, place: ReplyAddress, signal: AbortSignal): Promise<Author | undefined>;
  /**
   * True if a person is still in a place where the bot can write, so that what they asked for earlier can go on there.
   * Rejects if the platform does not answer. Absent: always true.
   */
  isThere?(authorId: string, place: ReplyAddress, signal: AbortSignal): Promise<boolean>;
  /**
   * Looks up the names of a place, for the operator's dashboard. Absent on platforms without named places; then the
   * platform's name says enough. Best effort.
   */
  namePlace?(place: Pick<ReplyAddress, "channelId" | "workspaceId">, signal: AbortSignal): Promise<PlaceNames>;
  /**
   * True if this person, and everyone who reads the answer, can read a message or a conversation; `id` is the
   * `messageId` or the `conversationId` of its event. False if that is unknown. Absent: nothing from another place can
   * be shown. Looks everything up again for each signal, so that lost rights count at once.
   */
  mayShow?(id: string, to: Actor, signal: AbortSignal): Promise<boolean>;
  /**
   * Reads a linked message with its thread, or with its neighbours, oldest first. Undefined for a foreign link, and for
   * one that `mayShow` refuses. Absent on platforms without links.
   */
  readLinked?(link: string, maxMessages: number, to: Actor, signal: AbortSignal): Promise<EarlierMessage[] | undefined>;
  /**
   * Searches the platform for this person. Hits can be shown only if `mayShow` allows it. Rejects with a
   * `SearchProblem` if the platform cannot search. Absent on platforms without a search.
   */
  search?(request: SearchRequest, by: Actor, signal: AbortSignal): Promise<SearchPage>;
  /**
   * Lists the channel of the question, or all channels that both the asker and the bot are in; those with the newest
   * messages first, if the platform reports that. Only what `mayShow` allows can be read. Empty for a direct
   * conversation. Rejects with a `SearchProblem` if the platform cannot list them. Absent on platforms without channels.
   */
  listReadable?(which: "here" | "all", to: Actor, signal: AbortSignal): Promise<ReadablePlace[]>;
  /**
   * Reads what people and apps wrote in a listed place and its threads. Leaves out private threads that the asker cannot
   * open. Reads as much as the platform's limits allow, newest first. Rejects with a `SearchProblem` if the bot cannot
   * read the place. Exists with `listReadable`.
   */
  readRecent?(placeId: string, range: RecentRange, to: Actor, signal: AbortSignal): Promise<Recent>;
  /** True while events of the platform arrive here. */
  isConnected(): boolean;
  /** Erases the data that the adapter itself stores; absent if the platform stores the messages. */
  forget?(which: ForgetScope): Promise<void>;
  /**
   * Stops delivery; replies can still be written. First hands connections of this process to others, for at most
   * `handOverMs`; absent: without waiting.
   */
  pause(handOverMs?: number): Promise<void>;
  /** Called once, after `pause`: from then on nothing is written, and nothing may keep the process alive. */
  close(): Promise<void>;
}

/** The options that the core gives to every adapter except its own page and terminal. */
export interface AdapterOptions {
  /** The commands that people can give. */
  commands: readonly CommandHelp[];
  listModels: ListModels;
  /** Absent: the form for a persona starts empty and suggests the usual prompts. */
  readPersona?: ReadPersona | undefined;
  /** Absent: the bot listens to no channel. */
  isListening?: IsListening | undefined;
  /** Groups and roles that the policy names, whose members are looked up; absent: none. */
  namedGroups?: (() => Promise<readonly string[]>) | undefined;
  /** Absent: images are off. */
  imagine?: ImagineMenu | undefined;
  log: Logger;
  /** The platform will never accept this bot again; `reason` is in plain words. Called at most once, after `listen`. */
  onFatal(reason: string): void;
  /** Unix milliseconds. */
  now(): number;
}
