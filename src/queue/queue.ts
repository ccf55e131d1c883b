import type { Logger } from "pino";
import type { InboundEvent } from "../port/events.ts";
import type { Work } from "../port/right.ts";

/** A queue's consumer. It chooses which events to handle together, and does the work. */
export interface Worker {
  /** Chooses the next events from all those that wait in a conversation, oldest first. Must include the first one. */
  take(waiting: readonly InboundEvent[]): InboundEvent[];
  /**
   * Does the work for these events. Resolves to the finished events: at least the first one, and perhaps others that
   * arrived meanwhile. The others are handed out again. If it rejects, all events stay and are retried after a pause.
   * Its signal aborts with `shutdown` when the queue closes and its grace period is over. It aborts with `forgotten`
   * when the author of the events is erased. All the events are then done, and nothing of the author's may be stored.
   * It aborts with `lost` when another process has taken the work over. Nothing may then be written at all.
   */
  work(events: InboundEvent[], work: Work): Promise<readonly InboundEvent[]>;
  /**
   * Tells the author in one sentence that the work is given up. Resolves like `work`. If absent, there is no notice.
   */
  giveUp?(events: InboundEvent[], work: Work): Promise<readonly InboundEvent[]>;
  /**
   * Called immediately for each event that is accepted for a conversation in this process, so that the event can
   * interrupt running work.
   */
  onAccepted(event: InboundEvent): void;
  /** Called for an accepted event that must wait for a slot until other conversations or images are finished. */
  onWaiting?(event: InboundEvent): void;
}

/**
 * Accepted events. Each is claimed once and stored durably. They are handled in order within a conversation, and fairly
 * between people. If a process dies, its open work is resumed at most a few times and then given up.
 */
export interface Queue {
  /**
   * Claims `event.key` for at least 24 h and stores the event. Returns false if the key was claimed before, or if this
   * message's deletion arrived first. Rejects if the event is not stored.
   */
  accept(event: InboundEvent): Promise<boolean>;
  /**
   * Sends an event to every process immediately, without storing it. The event interrupts work now or never. Rejects if
   * the other processes are unreachable.
   */
  tell(event: InboundEvent): Promise<void>;
  /**
   * Starts to hand out work. Call it at most once. Without a worker, other processes do the work, and this one only
   * counts.
   */
  start(worker: Worker | undefined): void;
  /** The conversation in which a message waits or is being handled. Undefined if there is none. */
  conversationOf(messageId: string): Promise<string | undefined>;
  /** The work got further than ever before, so a later death of the process does not count against it. */
  progressed(workId: string): void;
  /** The number of known processes that share the work, including this one. */
  processes(): number;
  /** Counts for this process's metrics: waiting events and active conversations. */
  depth(): { waiting: number; active: number };
  /** Erases an author's events except the one with this key. Resolves when the work on them has ended. */
  forget(platform: string, authorId: string, exceptKey: string): Promise<void>;
  /**
   * Erases the matching image requests that wait. Resolves to all matching ones, including those that are being
   * handled.
   */
  forgetDrawings(isMeant: (event: InboundEvent) => boolean): Promise<InboundEvent[]>;
  /**
   * Stops accepting events, lets work finish for `graceMs`, then aborts it. Unfinished work stays for the next start.
   */
  close(graceMs: number): Promise<void>;
}

export interface QueueOptions {
  /** The number of conversations that this process handles in parallel. Images have separate limits. */
  maxActive: number;
  /** Pause before failed work is retried. It doubles from the first value to the second. */
  retryMs?: readonly [first: number, longest: number];
  /** How long `close` waits for aborted work. */
  cutMs?: number;
  log: Logger;
}

export const RETRY_MS = [1_000, 30_000] as const;
export const CUT_MS = 4_000;
