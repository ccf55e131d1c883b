import type { Logger } from "pino";
import type { InboundEvent } from "../port/events.ts";

/** Consumer of a queue: what may be worked on together, and the work itself. */
export interface Worker {
  /** Chooses the events to work on next from all that wait in a conversation, oldest first. Must contain the first. */
  take(waiting: readonly InboundEvent[]): InboundEvent[];
  /**
   * Works on them. Resolves to the events that are done: the first one at least, and perhaps others that came
   * meanwhile; what is left is handed out again. When it rejects all stay and are worked on again after a pause.
   * `signal` aborts with `shutdown` when the queue closes and its grace period is over, and with `forgotten` when
   * the author of the events is erased: then nothing of theirs may be stored any more, and all of them are done.
   * With `lost` it aborts when another process has taken the work over: then nothing more may be written at all.
   */
  work(events: InboundEvent[], signal: AbortSignal): Promise<readonly InboundEvent[]>;
  /** Tells the author in one sentence that work is given up. Resolves as `work` does. Absent: nobody is told. */
  giveUp?(events: InboundEvent[], signal: AbortSignal): Promise<readonly InboundEvent[]>;
  /** Told of every accepted event at once, before its turn in the conversation comes, so that it can interrupt running work. */
  onAccepted(event: InboundEvent): void;
  /** Told of an accepted event that has to wait for a place: until others are answered, or their pictures drawn. */
  onWaiting?(event: InboundEvent): void;
}

/**
 * Accepted events: claimed once, durable, in order within a conversation, fair between people. `start` takes up what
 * was open when the process died, a few times at most: then it is given up.
 */
export interface Queue {
  /**
   * Claims `event.key` for at least 24 h and stores the event. False: it was claimed, or is a message whose deletion was
   * heard of before it. Rejects if it is not stored.
   */
  accept(event: InboundEvent): Promise<boolean>;
  /**
   * Lets every process notice an event at once and keeps it nowhere: what it interrupts, it interrupts now or never.
   * Rejects when the others cannot be told.
   */
  tell(event: InboundEvent): Promise<void>;
  /** Begins to hand out work; at most once. Without a worker that is left to other processes, and it only counts. */
  start(worker: Worker | undefined): void;
  /** The conversation in which a message waits or is being worked on; undefined when it does neither. */
  conversationOf(messageId: string): Promise<string | undefined>;
  /** The work came further than ever before: a death of the process from here on is no sign against it. */
  progressed(workId: string): void;
  /** Processes that share the work, this one included, as far as is known. */
  processes(): number;
  /** Counts for the metrics: events waiting, conversations being worked on. */
  depth(): { waiting: number; active: number };
  /** Erases an author's events but the one with this key. Resolves when the work on them has ended. */
  forget(platform: string, authorId: string, exceptKey: string): Promise<void>;
  /** Erases the waiting drawings that are meant, and resolves to all that are: the work on some may be under way. */
  forgetDrawings(isMeant: (event: InboundEvent) => boolean): Promise<InboundEvent[]>;
  /** Stops accepting, lets work finish for `graceMs`, then aborts it. Unfinished work stays for the next start. */
  close(graceMs: number): Promise<void>;
}

/** Options of every queue. */
export interface QueueOptions {
  /** Conversations that this process works on side by side; pictures have bounds of their own. */
  maxActive: number;
  /** Pause before failed work is tried again: doubles from the first to the second. */
  retryMs?: readonly [first: number, longest: number];
  /** Longest that `close` waits for work which it has aborted. */
  cutMs?: number;
  log: Logger;
}

export const RETRY_MS = [1_000, 30_000] as const;
export const CUT_MS = 4_000;
