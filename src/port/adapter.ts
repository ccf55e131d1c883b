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
  ReplyAddress,
} from "./events.ts";
import type { SharedWaits } from "./pace.ts";
import type { ReplySink } from "./sink.ts";

/**
 * The port: what the core asks of a platform, and what a platform tells the core. The work on an event takes one
 * attempt or more: when one fails, is cut or dies with its process, a later one goes on from what it left. That may be
 * made by another process, so events and addresses are plain JSON: a reply is written to an address, never to a live SDK
 * object. Drafts, files and signals stay within one process. Rejections that the core branches on are `SinkError`s.
 * "Best effort": may reject; the core then goes on without.
 */

export interface Adapter {
  readonly platform: string;
  /** Its messages are on this process's own disk: no other process can write them. */
  readonly isOwn?: true;
  /**
   * Starts delivery. Resolves when the platform is connected; `accept` is called from then on. `sayWaits` is for events
   * that cannot be given to `accept` yet, because one before them waits for the store: who said a command is told.
   */
  listen(accept: Accept, sayWaits?: (event: InboundEvent) => void): Promise<void>;
  /** Works in a process that never listened. */
  sink(address: ReplyAddress): ReplySink;
  /** Bytes of an attachment. Works in a process that never listened. Rejects when it is gone. */
  openAttachment(ref: AttachmentRef, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  /** A link for the next fifteen minutes and longer. Absent where a token is needed. Rejects when the file is gone. */
  publicUrl?(ref: AttachmentRef, signal: AbortSignal): Promise<string>;
  /**
   * Reads earlier messages of the thread, as far as a bot may; the bot's own only where all is asked for. Absent on
   * platforms without threads. Best effort.
   */
  readEarlier?(event: MessageEvent, range: EarlierRange, signal: AbortSignal): Promise<Earlier>;
  /**
   * Reads the last messages of a channel before the first of these messages that stands in the channel itself, oldest
   * first, as far as a bot may; empty where none does. In a direct conversation the last messages of the channel that
   * the person has open beside it, named in the first of them, as far as `mayShow` allows; empty where the platform
   * tells of none. Absent on platforms without channels. Best effort.
   */
  readChannel?(
    reply: ReplyAddress,
    messageIds: readonly string[],
    maxMessages: number,
    signal: AbortSignal,
  ): Promise<EarlierMessage[]>;
  /**
   * Tells one person something that nobody else sees, where they only wrote a message: the same nonce is told once.
   * Absent where a sink with `visibleTo` does that. Best effort.
   */
  postPrivately?(
    reply: ReplyAddress,
    authorId: string,
    markdown: string,
    nonce: string,
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Somebody as the author of an event in a place; undefined where there is nobody of that id. Absent: only the id
   * counts. Best effort.
   */
  findAuthor?(authorId: string, place: ReplyAddress, signal: AbortSignal): Promise<Author | undefined>;
  /**
   * True when this person, and everybody who reads the answer, may read a message or a conversation; `id` is the
   * `messageId` or the `conversationId` that its event had. False when that is unknown. Absent: nothing of another place
   * may be shown.
   */
  mayShow?(id: string, to: Actor, signal: AbortSignal): Promise<boolean>;
  /**
   * Reads a linked message with its thread, or with its neighbours, oldest first. Undefined for a foreign link, and for
   * one that `mayShow` refuses. Absent on platforms without links.
   */
  readLinked?(link: string, maxMessages: number, to: Actor, signal: AbortSignal): Promise<EarlierMessage[] | undefined>;
  /** True while events of the platform arrive here. */
  isConnected(): boolean;
  /** Erases what the adapter itself keeps about a person; absent where messages live elsewhere. */
  forget?(authorId: string): Promise<void>;
  /**
   * The same for a conversation as it stood before `at`, Unix milliseconds: of one person, or all where none is given.
   */
  forgetConversation?(conversationId: string, authorId: string | undefined, at: number): Promise<void>;
  /**
   * Stops delivery; replies may still be written. What only this process hears is handed to others first, for
   * `handOverMs` at most; absent: nobody is waited for.
   */
  pause(handOverMs?: number): Promise<void>;
  /** Called once, after `pause`: nothing is written from then on, and nothing may be left that keeps the process alive. */
  close(): Promise<void>;
}

/** The options that the core gives to every adapter of a platform that is not its own page or terminal. */
export interface AdapterOptions {
  /** The commands that people may give. */
  commands: readonly CommandHelp[];
  listModels: ListModels;
  /** Absent: the form for a persona begins empty, and the usual prompts are suggested. */
  readPersona?: ReadPersona | undefined;
  /** Absent: no channel is listened to. */
  isListening?: IsListening | undefined;
  /** Groups and roles that the policy names, whose members are looked up; absent: none. */
  namedGroups?: (() => Promise<readonly string[]>) | undefined;
  /** Absent: pictures are off. */
  imagine?: ImagineMenu | undefined;
  /** Shares rate-limit pauses with other processes that use the same tokens; absent: there are none. */
  waits?: SharedWaits | undefined;
  log: Logger;
  /** The platform will never accept this bot again; `reason` is in plain words. Called at most once, after `listen`. */
  onFatal(reason: string): void;
  /** Unix milliseconds. */
  now(): number;
}
