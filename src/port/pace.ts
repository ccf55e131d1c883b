/** A write: create a message, change it, or change it for the last time. Platforms can count each kind separately. */
export type CallKind = "post" | "edit" | "final";

/** The state of a rate limit, as a platform reports it with an accepted call. */
export interface BudgetHeaders {
  /** How many calls the limit allows in one window. */
  limit: number;
  /** How many calls are left after this one. */
  remaining: number;
  /** How long until the limit is available in full again. */
  resetAfterMs: number;
}

/** The result of a call. `retryAfterMs` is set if the platform refused the call because of a rate limit. */
export type CallResult = { ok: true; budget?: BudgetHeaders } | { ok: false; retryAfterMs?: number };

/** The result of a call, and what the reply still needs. */
export interface Written {
  answer: CallResult;
  /**
   * True if the message lacks text that the reply had when the call started. Text that arrived later does not count.
   */
  behind: boolean;
  /** The kind of the call that was made, if it differs from the kind that `step` named. */
  kind?: CallKind;
  /** The kind of the reply's next call. Absent: an edit, if the call was accepted. */
  next?: CallKind;
  /** True if the fallback writes the reply from this call on. */
  isFallback?: boolean;
}

/**
 * A call against a rate limit, as one process reports it to the next process that uses the limit. It is recorded when
 * the call starts, and again if the platform refused the call or counted it as another kind.
 */
export interface KnownCall {
  kind: CallKind;
  /** `JoinOptions.room`; "" without a room. */
  room: string;
  /** True if the fallback made the call. */
  isFallback: boolean;
  /** When the call was sent or refused, in milliseconds of the reading process's monotonic clock. */
  sentAt: number;
  /** Set if the platform refused the call: no other call may follow for this long after `sentAt`. */
  refusedForMs?: number;
}

export type PacerStep =
  | { type: "send"; reply: number; kind: CallKind; isFallback?: boolean }
  | { type: "wait"; until: number }
  /** No call is due before the next event. */
  | { type: "idle" };

export interface JoinOptions {
  /** Replies with the same room share the limit on posts. Absent: the reply shares that limit with no other reply. */
  room?: string | undefined;
  /** True if the reply starts on the fallback. */
  isFallback?: boolean | undefined;
  /** The kind of the reply's first call; absent: a post. */
  first?: CallKind | undefined;
}

/**
 * Decides which reply of one rate-limit budget is written next, and when. Pure: events go in, steps come out. Times are
 * milliseconds of one monotonic clock. After every event, and at the time that `step` named, the caller calls `step`
 * until it returns something other than "send". During a wait, the caller can call `step` a little later than `text`.
 * Each reply has at most one call in flight.
 */
export interface Pacer {
  /** Adds a reply and returns its number. */
  join(options?: JoinOptions): number;
  text(reply: number, units: number, now: number): void;
  /** Reports that the text is complete. One more call follows, and is repeated until the message shows all text. */
  end(reply: number): void;
  /** Forgets a reply that is finished or abandoned. A call without a response yet still counts against the budget. */
  leave(reply: number): void;
  step(now: number): PacerStep;
  /** Reports the end of the call that the last "send" for this reply started. */
  done(reply: number, written: Written, now: number): void;
  /** Counts calls of other processes, oldest first. Absent on a pacer that counts no calls. */
  recall?(calls: readonly KnownCall[]): void;
  /** Returns the time at which the pacer's counts and estimates expire. A pacer without replies can be dropped then. */
  keepUntil(): number;
}

/** A platform's rate limit, and the policy by which its adapter respects it. */
export interface ReplyBudget {
  /** Names the limit. All replies with this key share it. Starts with the platform. */
  readonly key: string;
  /** Creates the pacer for this key: for the first reply, and again for a reply after a time without replies. */
  createPacer(): Pacer;
}
