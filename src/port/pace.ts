/**
 * A message is created (`post`), changed (`edit`), or changed for the last time (`final`): platforms may count them
 * separately.
 */
export type CallKind = "post" | "edit" | "final";

/** A platform's report on its counter, with an accepted call. */
export interface BudgetHeaders {
  /** Calls that one window allows. */
  limit: number;
  /** Calls left after this one. */
  remaining: number;
  /** Time until the counter is full again. */
  resetAfterMs: number;
}

/** A platform's answer to one call. A refusal for the rate has `retryAfterMs`; without it nothing is known. */
export type CallResult = { ok: true; budget?: BudgetHeaders } | { ok: false; retryAfterMs?: number };

/** The end of one call, and the work that remains. */
export interface Written {
  answer: CallResult;
  /** A part of the reply's text at that time is not shown yet; text that arrived since then does not count. */
  behind: boolean;
  /** The kind of call that was made, if it differs from the one that `step` named. */
  kind?: CallKind;
  /** The kind of the reply's next call; absent: an edit once a post was accepted. */
  next?: CallKind;
  /** From here on the fallback writes the reply. */
  isFallback?: boolean;
}

/**
 * A call against a limit, as the process that made it reports it to the next process that calls there. Recorded when it
 * starts, and again if it was refused or turned out to be another kind of call.
 */
export interface KnownCall {
  kind: CallKind;
  /** As in `JoinOptions`; "" if the reply shares no room. */
  room: string;
  /** The fallback made the call. */
  isFallback: boolean;
  /** By the monotonic clock of the process that reads this, in milliseconds; for a refusal, the time of the refusal. */
  sentAt: number;
  /** Set if the call was refused: no other call may follow for this long after `sentAt`. */
  refusedForMs?: number;
}

export type PacerStep =
  | { type: "send"; reply: number; kind: CallKind; isFallback?: boolean }
  | { type: "wait"; until: number }
  /** Nothing will be due before the next event. */
  | { type: "idle" };

export interface JoinOptions {
  /** Replies of one room share the limit on posts; absent: the reply has its own. */
  room?: string | undefined;
  /** Starts the reply on the fallback. */
  isFallback?: boolean | undefined;
  /** Its first call; absent: a post. */
  first?: CallKind | undefined;
}

/**
 * Decides which reply of one rate-limit budget is written next, and when. Pure: events in, steps out. Times are
 * milliseconds on one monotonic clock of the caller; they never go back. Call `step` after every event (a little later
 * for text if it named a wait), at every time that it named, and repeatedly until it returns something other than
 * "send". At most one call per reply is in flight.
 */
export interface Pacer {
  /** Adds a reply and gives it a number. */
  join(options?: JoinOptions): number;
  /** `units` of new text arrived (characters). */
  text(reply: number, units: number, now: number): void;
  /**
   * The text is complete. One more call follows whatever was shown before; it is repeated until it is accepted and not
   * behind.
   */
  end(reply: number): void;
  /** Forgets a reply that is finished or given up. A call in flight still counts against the budget. */
  leave(reply: number): void;
  step(now: number): PacerStep;
  /** The call that this reply's last "send" started has ended. */
  done(reply: number, written: Written, now: number): void;
  /** Counts calls of other processes, oldest first; absent if the pacer counts nothing. */
  recall?(calls: readonly KnownCall[]): void;
  /** Until when its counts and estimates matter; a pacer without replies can be dropped after that. */
  keepUntil(): number;
}

/** A platform's rate limit, and the policy by which its adapter respects it. */
export interface ReplyBudget {
  /** Names the limit that these replies share with others; starts with the platform. */
  readonly key: string;
  /**
   * Creates the pacer of this key; called for the first reply that needs one, and again after a time without replies.
   */
  createPacer(): Pacer;
}
