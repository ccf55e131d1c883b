/** A message is made (`post`), changed (`edit`), changed for the last time (`final`): platforms may count them apart. */
export type CallKind = "post" | "edit" | "final";

/** What a platform says about its counter with an accepted call. */
export interface BudgetHeaders {
  /** Calls one window allows. */
  limit: number;
  /** Calls left after this one. */
  remaining: number;
  /** Seconds until the counter is full again. */
  resetAfter: number;
}

/** How the platform answered one call. `retryAfter` (seconds) is there with a refusal for the rate; without it nothing is known. */
export type Answer = { ok: true; budget?: BudgetHeaders } | { ok: false; retryAfter?: number };

/** How one call ended, and what it leaves to do. */
export interface Written {
  answer: Answer;
  /** Something of the reply's current text is still not shown: text that arrived since then does not count. */
  behind: boolean;
  /** What the call was, where it was not what `step` had said. */
  kind?: CallKind;
  /** What the reply's next call will be; without it an edit once a post was accepted. */
  next?: CallKind;
  /** The reply is written by the fallback from here on, where there are two. */
  isFallback?: boolean;
}
