import type { Logger } from "pino";
import type { InboundEvent } from "../port/events.ts";
import type { Work } from "../port/right.ts";

/** Does the queue's work: chooses which events to handle together, and handles them. */
export interface Worker {
  /** Chooses which events of a conversation to handle next. `waiting` is oldest first. Must include the first event. */
  take(waiting: readonly InboundEvent[]): InboundEvent[];
  /**
   * Does the work for these events. Resolves to the finished events: at least the first one, and perhaps others that
   * arrived during the work. The queue hands the unfinished events out again. If the promise rejects, the queue retries
   * all events after a pause. The signal in `work` aborts with `shutdown` when the queue closes and its grace period is
   * over. It aborts with `forgotten` when the author of the events is erased: all the events then count as done, and
   * nothing of the author's may be stored. It aborts with `lost` when another process has taken the work over: nothing
   * at all may then be written.
   */
  work(events: InboundEvent[], work: Work): Promise<readonly InboundEvent[]>;
  /** Tells the author that the work was given up. Resolves like `work`. If absent, the author gets no notice. */
  giveUp?(events: InboundEvent[], work: Work): Promise<readonly InboundEvent[]>;
  /** Called at once for each event that is accepted for this process, so that the event can interrupt running work. */
  onAccepted(event: InboundEvent): void;
  /** Called for an event that must wait for a free slot. */
  onWaiting?(event: InboundEvent): void;
}

/**
 * Accepts and stores events, each of them once, and hands them out. Events run in order within a conversation, and
 * fairly between people. If a process dies, other processes resume its work a few times before they give it up.
 */
export interface Queue {
  /**
   * Stores the event and claims `event.key` for at least 24 h. Returns false if the key was claimed before, or if the
   * message was already deleted. Rejects if the event is not stored.
   */
  accept(event: InboundEvent): Promise<boolean>;
  /** Sends the event to every process at once, without storing it. Rejects if the other processes are unreachable. */
  tell(event: InboundEvent): Promise<void>;
  /** Starts to hand out work. Call this once. Without a worker, other processes do the work. */
  start(worker: Worker | undefined): void;
  /** The conversation of a message that is waiting or being handled. */
  conversationOf(messageId: string): Promise<string | undefined>;
  /** Reports that the work made progress, so earlier deaths no longer count against it. */
  progressed(workId: string): void;
  /** The number of processes that share the work, including this one. */
  processes(): number;
  /** How many events wait and how many conversations are active in this process, for metrics. */
  depth(): { waiting: number; active: number };
  /** Erases an author's events except the one with `exceptKey`. Resolves when the work for the author has ended. */
  forget(platform: string, authorId: string, exceptKey: string): Promise<void>;
  /** Erases matching image requests, without interrupting those that run. Resolves to all matching requests. */
  forgetDrawings(isMeant: (event: InboundEvent) => boolean): Promise<InboundEvent[]>;
  /** Lets running work finish for `graceMs`, then aborts it. The next start resumes unfinished work. */
  close(graceMs: number): Promise<void>;
}

export interface QueueOptions {
  /** How many conversations this process handles at once. Images have separate limits. */
  maxActive: number;
  /** The first and the longest pause before a retry. The pause doubles with each failure. */
  retryMs?: readonly [first: number, longest: number];
  /** How long `close` waits for aborted work. */
  cutMs?: number;
  log: Logger;
}

export const RETRY_MS = [1_000, 30_000] as const;
export const CUT_MS = 4_000;
