import type { InboundEvent } from "../adapter.ts";

/** Consumer of a queue: what may be worked on together, and the work itself. */
export interface Worker {
  /**
   * Chooses, from all events that wait in one conversation (oldest first, never empty), those that are
   * worked on next. Must contain the first one.
   */
  take(waiting: readonly InboundEvent[]): InboundEvent[];
  /**
   * Works on them. Their events are done when it resolves; when it rejects they stay and are worked on
   * again after a pause. `signal` aborts when the queue closes and its grace period is over.
   */
  work(events: InboundEvent[], signal: AbortSignal): Promise<void>;
  /** Told of every accepted event at once, before its turn in the conversation comes: what interrupts running work. */
  notice(event: InboundEvent): void;
}

/**
 * Accepted events: claimed once, durable, worked on in order within a conversation and side by side
 * between conversations. Work that was open when the process died is taken up again by `start`.
 */
export interface Queue {
  /**
   * Claims `event.key` for at least 24 h and stores the event. Resolves to false when the key had been claimed
   * before. Rejects when the event could not be stored, or when the queue no longer accepts.
   */
  accept(event: InboundEvent): Promise<boolean>;
  /** Begins to hand out work; at most once. */
  start(worker: Worker): void;
  /** Counts for the metrics: events waiting, conversations being worked on. */
  depth(): { waiting: number; active: number };
  /** Erases waiting and claimed events of one author. */
  forget(platform: string, authorId: string): Promise<void>;
  /**
   * Stops accepting and handing out, lets running work finish for `graceMs`, then aborts it and waits for it
   * to end. What was not begun stays for the next start.
   */
  close(graceMs: number): Promise<void>;
}
