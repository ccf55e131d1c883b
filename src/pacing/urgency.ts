import type { Budget, Call } from "./budget.ts";
import type { CallKind } from "./call.ts";
import type { ReplyState } from "./reply-state.ts";
import { toArea, toBacklog } from "./reply-state.ts";

/** Seconds that the first post waits at most, so that it says more than one token. */
const FIRST_HOLD = 0.1;
/** Text that comes more seldom than this, seconds, says too little more within the hold. */
const FIRST_GAP = 0.025;
/** The least a lull must last before it counts as one, seconds. */
const LULL = 0.06;
/** Seconds without text after which the leftovers of a burst are shown if there is plenty. */
const LONG_PAUSE = 0.5;
/** A credit this close to coming back is as good as one in hand, seconds. */
const SOON = 0.8;
/** An edit may use the reserve for finals when a credit returns within this time, seconds. */
const REFILL = 4;
/** No question about credit is asked again before this time has passed, seconds. */
const LEAST_WAIT = 0.002;

/** What all replies of a budget share at a moment; letters as in the policy. */
export interface Moment {
  now: number;
  budget: Budget;
  /** Planned gap between calls, seconds. */
  G: number;
  active: number;
  /** Sum of sqrt(rate / 2) over the replies that grow: the price of attention. */
  z: number;
  /** Calls that edits leave for finals. */
  R: number;
  lastCall: number;
}

/** Finals before posts before edits. */
export type Rank = 0 | 1 | 2;

export interface Urgency {
  rank: Rank;
  kind: CallKind;
  /** When the call should begin and may: not after now if it can at once. */
  at: number;
}

/** When the next call of a reply with something to show is due, and whether the budget allows it. */
export function toUrgency(reply: ReplyState, moment: Moment): Urgency {
  const { now, budget, R } = moment;
  const { rank, kind, due } = toWish(reply, moment);
  const wished = Math.max(due, reply.notBefore);
  if (wished > now) return { rank, kind, at: wished };

  const call: Call = { kind, room: reply.room };
  const credit = budget.credit(call, now);
  let needs = 1;
  if (rank === 2 && !(credit >= 1 && budget.creditAt(call, credit + 1, now) <= now + REFILL)) needs = 1 + R;
  if (credit >= needs) return { rank, kind, at: now };
  return { rank, kind, at: Math.max(budget.creditAt(call, needs, now), now + LEAST_WAIT) };
}

function toWish(reply: ReplyState, moment: Moment): { rank: Rank; kind: CallKind; due: number } {
  const { now } = moment;
  if (reply.ended) return { rank: 0, kind: reply.next === "post" ? "post" : "final", due: now };
  if (reply.next === "post" && reply.acked === 0) return { rank: 1, kind: "post", due: toFirstDue(reply) };
  if (reply.owes || reply.next === "post") return { rank: 1, kind: reply.next, due: now };
  return { rank: 2, kind: "edit", due: toEditDue(reply, moment) };
}

/** The first post waits only while more text is likely before the hold is over. */
function toFirstDue({ firstText, lastText, arrivalGap }: ReplyState): number {
  const end = firstText + FIRST_HOLD;
  if (arrivalGap !== undefined && lastText + arrivalGap >= end) return lastText;
  return Math.min(end, lastText + Math.max(FIRST_GAP, 2 * (arrivalGap ?? 0)));
}

/**
 * An edit is due when the integral of what is unseen reaches the price of a call. For steady text that gives exactly
 * the planned gap, for a burst it waits for the end of the burst, and replies that share a budget get calls in
 * proportion to the root of their rates: the optimum for a cost that is that integral.
 */
function toEditDue(reply: ReplyState, moment: Moment): number {
  const { now, budget, G, active, z, lastCall } = moment;
  const isFirst = reply.edits === 0 && active === 1;
  const g = isFirst && budget.isRich(now, G * active) ? Math.min(G, budget.firstGap) : G;
  const price = (g * Math.max(z, Math.sqrt(reply.rate / 2))) ** 2;

  let due = momentOfArea(reply, price, now);
  if (active > 1) due = Math.min(due, Math.max(lastCall + G, momentOfArea(reply, 0.6 * price, now)));
  due = Math.min(due, reply.oldest + 1.5 * G * active);
  due = Math.min(due, toLullDue(reply, moment, due));
  return Math.max(due, reply.lastSend + budget.minGap);
}

/** When a lull lets the edit go before its turn; `due` when it does not. */
function toLullDue(reply: ReplyState, moment: Moment, due: number): number {
  const { budget, now, G, active } = moment;
  const gap = reply.arrivalGap ?? 0;
  // Text in rare lumps: each lump is whole as soon as it is there.
  const lull = reply.lastText + (gap >= 0.35 * G * active ? LULL : Math.max(LULL, 4 * gap));
  const isWorth = toBacklog(reply) >= 0.3 * reply.rate * G * active;
  if (lull < due && isWorth && canSpare(reply, moment, Math.max(now, lull))) return lull;

  const pause = reply.lastText + LONG_PAUSE;
  const at = Math.max(now, pause);
  if (pause < due && budget.isRich(at, G * active) && canSpare(reply, moment, at)) return pause;
  return due;
}

/** Whether a call out of turn at that moment leaves enough for those in turn. */
function canSpare(reply: ReplyState, { budget, R }: Moment, at: number): boolean {
  const call: Call = { kind: "edit", room: reply.room };
  const credit = budget.credit(call, at);
  if (credit > budget.keep + R) return true;
  return credit > R && budget.credit(call, at + SOON) > credit;
}

function momentOfArea(reply: ReplyState, area: number, now: number): number {
  const missing = area - toArea(reply, now);
  return missing <= 0 ? now : now + missing / toBacklog(reply);
}
