import type { CallKind, CallResult } from "../port/pace.ts";

/** One call from the budget's point of view. Platforms can limit posts per room, across replies. */
export interface Call {
  kind: CallKind;
  room: string;
}

/** A call that has ended, with or without a response. */
export interface EndedCall {
  /** The kind of call that was really made. */
  kind: CallKind;
  sentAt: number;
  answer: CallResult;
}

/** How a reply grows: how much, since when, how fast, and with how many calls. */
export interface Growth {
  /** Units that have arrived. */
  total: number;
  /** Units per millisecond. */
  rate: number;
  firstText: number;
  /** Number of its calls so far, without the post. */
  edits: number;
}

/** The needs of all replies of a budget at one moment. */
export interface Demand {
  now: number;
  growing: readonly Growth[];
  /** Number of growing replies, but at least 1. */
  active: number;
  /**
   * Number of replies with text that have not started their last call, growing or not. Each needs at least one more
   * call.
   */
  unfinished: number;
  /** Start times of replies in the last five minutes, oldest first. */
  starts: readonly number[];
}

/** One rate limit, or several that are planned together. Queries about a future moment have no side effects. */
export interface Budget {
  /** Earliest first edit of a single reply while the budget is rich, in milliseconds. */
  readonly firstGapMs: number;
  /** Shortest time between two calls of one reply, in milliseconds. */
  readonly minGapMs: number;
  /** Credits that an edit out of turn must leave, in addition to the reserve. */
  readonly spare: number;
  /** Number of calls that edits must leave for finals. */
  reserve(demand: Demand): number;
  /**
   * When another reply can start and still have a call for its final, together with the unfinished replies. Returns now
   * if a first post uses nothing that finals need.
   */
  beginAt?(demand: Demand): number;
  /** Planned time between calls across all replies of the budget, in milliseconds. */
  gap(demand: Demand): number;
  /** True if the budget has plenty of credit at that moment. `gapPerReply` is the planned gap for each reply. */
  isRich(at: number, gapPerReply: number): boolean;
  /** How many such calls could start at that moment. */
  credit(call: Call, at: number): number;
  /**
   * The first moment at or after `from` at which `needs` such calls could start. Infinity if that depends on a
   * response.
   */
  creditAt(call: Call, needs: number, from: number): number;
  sent(call: Call, now: number): void;
  /** Called when the call that was planned as `planned` has ended. */
  done(planned: Call, ended: EndedCall, now: number): void;
  keepUntil(): number;
}
