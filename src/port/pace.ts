/** A message is made (`post`), changed (`edit`), changed for the last time (`final`): platforms may count them apart. */
export type CallKind = "post" | "edit" | "final";

/** A platform's word about its counter, with an accepted call. */
export interface BudgetHeaders {
  /** Calls one window allows. */
  limit: number;
  /** Calls left after this one. */
  remaining: number;
  /** Time until the counter is full again. */
  resetAfterMs: number;
}

/** A platform's answer to one call. `retryAfterMs` is there with a refusal for the rate; without it nothing is known. */
export type CallResult = { ok: true; budget?: BudgetHeaders } | { ok: false; retryAfterMs?: number };

/** The end of one call, and what it leaves to do. */
export interface Written {
  answer: CallResult;
  /** Something of the reply's current text is still not shown: text that arrived since then does not count. */
  behind: boolean;
  /** The kind of call that was made, where it was not the one that `step` had said. */
  kind?: CallKind;
  /** The kind of the reply's next call; without it an edit once a post was accepted. */
  next?: CallKind;
  /** The reply is written by the fallback from here on, where there are two. */
  isFallback?: boolean;
}

/**
 * A call against a limit that processes share, as whoever makes it tells the others. It is told as it begins, and once
 * more where the answer shows that it was refused, or was another call than it began as.
 */
export interface KnownCall {
  kind: CallKind;
  /** As in `JoinOptions`; "": it shares no room. */
  room: string;
  /** The call was made by the fallback way of writing. */
  isFallback: boolean;
  /** By the monotonic clock of the process that reads this, in milliseconds; with a refusal, the time of that. */
  sentAt: number;
  /** Set where the call was refused: from `sentAt` on no other may follow for so long. */
  refusedForMs?: number;
}

export type PacerStep =
  | { type: "send"; reply: number; kind: CallKind; isFallback?: boolean }
  | { type: "wait"; until: number }
  /** Nothing will be due before the next event. */
  | { type: "idle" };

export interface JoinOptions {
  /** Replies of one room share the limit on posts; without it a reply is alone. */
  room?: string | undefined;
  /** Begins the reply on the fallback, where there are two ways of writing. */
  isFallback?: boolean | undefined;
  /** Its first call; a post when absent. */
  first?: CallKind | undefined;
}

/**
 * Decides which reply of one rate-limit budget is written next, and when. Pure: events in, steps out. Times are
 * milliseconds on one monotonic clock of the caller's; they never go back. `step` is asked after every event, a little
 * later where that is text and a wait was named, and at every time it named, again and again until it says something
 * else than "send". At most one call of a reply is in flight.
 */
export interface Pacer {
  /** Takes up a reply and gives it a number. */
  join(options?: JoinOptions): number;
  /** `units` of new text arrived (characters). */
  text(reply: number, units: number, now: number): void;
  /** No more text comes. One more call is made whatever was shown before, and repeated until it is accepted and not behind. */
  end(reply: number): void;
  /** Forgets a reply that is finished or given up. What is still in flight keeps counting against the budget. */
  leave(reply: number): void;
  step(now: number): PacerStep;
  /** The call that the last "send" for this reply started has ended. */
  done(reply: number, written: Written, now: number): void;
  /** Counts calls that other processes made, oldest first; absent where nothing is counted. */
  recall?(calls: readonly KnownCall[]): void;
  /** Until when what was learnt and counted still matters; a pacer without replies may be dropped after that. */
  keepUntil(): number;
}

/** A rate limit of a platform, and the policy with which its adapter keeps it. */
export interface ReplyBudget {
  /** Names the limit that these replies share with others; begins with the platform. */
  readonly key: string;
  /** Makes the pacer of this key; asked of the first reply that needs one, and again after a time without replies. */
  createPacer(): Pacer;
}

/** Waits that a platform asked one process for, known to all that make the same calls. */
export interface SharedWaits {
  /** Best effort: never throws. `what` names the calls that wait. */
  tell(what: string, forMs: number): void;
  /** Tells of waits that other processes have announced before, and announce from now on. */
  listen(onTold: (what: string, forMs: number) => void): void;
}
