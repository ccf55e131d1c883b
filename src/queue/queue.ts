import type { Logger } from "pino";
import type { InboundEvent } from "../port/events.ts";
import type { Work } from "../port/right.ts";

/** Chooses which events to handle together, and handles them. */
export interface Worker {
  /** Chooses the next events of a conversation, oldest first. Must include the first one. */
  take(waiting: readonly InboundEvent[]): InboundEvent[];
  /**
   * Does the work for these events. Resolves to the finished events: at least the first one, and perhaps others that
   * arrived meanwhile. The others are handed out again. If it rejects, all events stay and are retried after a pause.
   * Its signal aborts with `shutdown` when the queue closes and its grace period is over. It aborts with `forgotten`
   * when the author of the events is erased. All the events are then done, and nothing of the author's may be stored.
   * It aborts with `lost` when another process has taken the work over. Nothing may then be written at all.
   */
  work(events: InboundEvent[], work: Work): Promise<readonly InboundEvent[]>;
  /** Tells the author that the work is given up. Resolves like `work`. Absent: no notice. */
  giveUp?(events: InboundEvent[], work: Work): Promise<readonly InboundEvent[]>;
  /** Called at once for each event that is accepted for this process, so that it can interrupt running work. */
  onAccepted(event: InboundEvent): void;
  /** Called for an event that waits for a free slot. */
  onWaiting?(event: InboundEvent): void;
}

/**
 * Accepted events: each is claimed once and stored. They run in order within a conversation, and fairly between people.
 * If a process dies, others resume its work a few times and then give it up.
 */
export interface Queue {
  /**
   * Claims `event.key` for at least 24 h. Returns false if it was claimed before, or if the message was already
   * deleted. Rejects if the event is not stored.
   */
  accept(event: InboundEvent): Promise<boolean>;
  /** Reaches every process at once. The event is not stored. Rejects if the other processes are unreachable. */
  tell(event: InboundEvent): Promise<void>;
  /** Hands out work; call it once. Without a worker, other processes do the work. */
  start(worker: Worker | undefined): void;
  /** The conversation of a message that waits or is handled. */
  conversationOf(messageId: string): Promise<string | undefined>;
  /** The work made progress, so earlier deaths no longer count. */
  progressed(workId: string): void;
  /** Includes this process. */
  processes(): number;
  /** For metrics of this process: waiting events and active conversations. */
  depth(): { waiting: number; active: number };
  /** Erases an author's events except the one with this key. Resolves when the work for the author has ended. */
  forget(platform: string, authorId: string, exceptKey: string): Promise<void>;
  /** Erases matching image requests that wait. Resolves to all matching ones, with those that run. */
  forgetDrawings(isMeant: (event: InboundEvent) => boolean): Promise<InboundEvent[]>;
  /** Lets work finish for `graceMs`, then aborts it. The next start resumes unfinished work. */
  close(graceMs: number): Promise<void>;
}

export interface QueueOptions {
  /** The slots for conversations. Images have other limits. */
  maxActive: number;
  /** The pause before a retry, doubling from the first value to the second. */
  retryMs?: readonly [first: number, longest: number];
  /** How long `close` waits for aborted work. */
  cutMs?: number;
  log: Logger;
}

export const RETRY_MS = [1_000, 30_000] as const;
export const CUT_MS = 4_000;
