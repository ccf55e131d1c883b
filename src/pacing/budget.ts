import type { CallKind, CallResult } from "../port/pace.ts";

/** One call as its budget sees it. Posts may be limited per room, whatever reply they belong to. */
export interface Call {
  kind: CallKind;
  room: string;
}

/** A call that was answered, or not. */
export interface EndedCall {
  /** The kind that it turned out to be. */
  kind: CallKind;
  sentAt: number;
  answer: CallResult;
}

/** The growth of a reply: how far, since when, how fast, and with how many calls. */
export interface Growth {
  /** Units that arrived so far. */
  total: number;
  /** Units per millisecond. */
  rate: number;
  firstText: number;
  /** Its calls so far, the post not included. */
  edits: number;
}

/** The demand on a budget at a moment. */
export interface Demand {
  now: number;
  /** The replies that grow at this moment. */
  growing: readonly Growth[];
  /** Their number, at least 1. */
  active: number;
  /** Replies with text whose last call has not begun, growing or not: each of them needs one more. */
  unfinished: number;
  /** Beginnings of replies in the last five minutes, oldest first. */
  starts: readonly number[];
}

/** One rate limit, or several that are planned together. Questions about a future moment have no side effects. */
export interface Budget {
  /** After this time the first edit of a lone reply may come while the budget is rich. */
  readonly firstGapMs: number;
  /** Least time between two calls of one reply. */
  readonly minGapMs: number;
  /** Credits beyond the reserve that an edit out of turn leaves. */
  readonly spare: number;
  /** Calls that edits leave for finals. */
  reserve(demand: Demand): number;
  /**
   * The time from which one more reply may begin and still find a call for its final, beside those of the unfinished
   * replies. Now, if a first post takes nothing that finals need.
   */
  beginAt?(demand: Demand): number;
  /** Planned time between calls, over all replies of the budget, milliseconds. */
  gap(demand: Demand): number;
  /** True when there is plenty at that moment; `gapPerReply` is the planned gap of each reply. */
  isRich(at: number, gapPerReply: number): boolean;
  /** The number of such calls that could start at that moment. */
  credit(call: Call, at: number): number;
  /** The first moment from `from` on when `needs` such calls could start; Infinity if that depends on an answer. */
  creditAt(call: Call, needs: number, from: number): number;
  sent(call: Call, now: number): void;
  /** The call that started as `planned` has ended. */
  done(planned: Call, ended: EndedCall, now: number): void;
  keepUntil(): number;
}
