import type { CallKind, CallResult } from "../port/pace.ts";

/** A call that counts against a budget. Platforms can also limit the posts of all replies in a room. */
export interface Call {
  kind: CallKind;
  room: string;
}

/** A call that has ended, with or without a response. */
export interface EndedCall {
  /** The kind of the call that was made, which can differ from the planned kind. */
  kind: CallKind;
  sentAt: number;
  answer: CallResult;
}

export interface Growth {
  /** Units that have arrived. */
  total: number;
  /** Units per millisecond. */
  rate: number;
  firstText: number;
  /** Number of the reply's calls, not counting its post. */
  edits: number;
}

export interface Demand {
  now: number;
  growing: readonly Growth[];
  /** Number of growing replies, but at least 1. */
  active: number;
  /** Number of replies that have text and need at least one more call, whether they grow or not. */
  unfinished: number;
  /** Start times of replies in the last five minutes, oldest first. */
  starts: readonly number[];
}

/** One rate limit, or several that the pacer plans together. Queries about a future moment have no side effects. */
export interface Budget {
  /** Minimum time in milliseconds before the first edit of a single reply while the budget is rich. */
  readonly firstGapMs: number;
  /** Minimum time between two calls of one reply, in milliseconds. */
  readonly minGapMs: number;
  /** Number of calls that an early edit must leave unused, in addition to the reserve. */
  readonly spare: number;
  /** Returns how many calls edits must leave unused, so that replies can still make their final calls. */
  reserve(demand: Demand): number;
  /**
   * Returns when one more reply can start so that a final call stays available for it and for every unfinished reply.
   * Returns `now` if a first post uses no credit that final calls need.
   */
  beginAt?(demand: Demand): number;
  /** Returns the planned time between two calls of the whole budget, in milliseconds. */
  gap(demand: Demand): number;
  /**
   * True if the budget has plenty of credit at that moment. `gapPerReply` is the planned time between a reply's calls.
   */
  isRich(at: number, gapPerReply: number): boolean;
  /** Returns how many such calls could start at that moment. */
  credit(call: Call, at: number): number;
  /**
   * Returns the first moment at or after `from` at which `needs` such calls could start; Infinity if that depends on a
   * response.
   */
  creditAt(call: Call, needs: number, from: number): number;
  sent(call: Call, now: number): void;
  /** Records the end of a call. `planned` is the call as the pacer planned it. */
  done(planned: Call, ended: EndedCall, now: number): void;
  keepUntil(): number;
}
