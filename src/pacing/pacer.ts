import type { Budget, Demand } from "./budget.ts";
import type { CallKind, Written } from "./call.ts";
import type { ReplyState } from "./reply-state.ts";
import {
  applyEnd,
  applySend,
  applyText,
  applyWritten,
  createReplyState,
  isUnfinished,
  isWaiting,
  toArea,
} from "./reply-state.ts";
import type { Moment, Urgency } from "./urgency.ts";
import { toUrgency } from "./urgency.ts";

export type Step =
  | { type: "send"; reply: number; kind: CallKind; isFallback?: boolean }
  | { type: "wait"; until: number }
  /** Nothing will be due before the next event. */
  | { type: "idle" };

/**
 * Decides which reply of one rate-limit budget is written next, and when. Pure: events in, steps out.
 * Times are seconds on one monotonic clock of the caller's; they never go back. `step` is asked after every
 * event and at every time it named, again and again until it says something else than "send". At most one
 * call of a reply is in flight.
 */
export interface Pacer {
  /**
   * Takes up a reply and gives it a number. Replies of one `room` share the limit on posts; without it a reply is
   * alone. `isFallback` begins it on the fallback, where there are two. `first` is its first call, a post when absent.
   */
  join(now: number, room?: string, isFallback?: boolean, first?: CallKind): number;
  /** `units` of new text arrived (characters). */
  text(reply: number, units: number, now: number): void;
  /** No more text comes. One more call is made whatever was shown before, and repeated until it is accepted and not behind. */
  end(reply: number, now: number): void;
  /** Forgets a reply that is finished or given up. What is still in flight keeps counting against the budget. */
  leave(reply: number, now: number): void;
  step(now: number): Step;
  /** The call that the last "send" for this reply started has ended. */
  done(reply: number, written: Written, now: number): void;
  /** Until when what was learnt and counted still matters; a pacer without replies may be dropped after that. */
  keepUntil(): number;
}

/** A pacer whose replies can go over to another one. */
export interface OpenPacer extends Pacer {
  /** How many of its replies grow at that moment. */
  growing(now: number): number;
  find(reply: number): Readonly<ReplyState> | undefined;
  /** Lets a reply go that has no call in flight. */
  release(reply: number): ReplyState | undefined;
  /** Takes over a released reply and gives it a number. What failed before does not hold it up here. */
  adopt(reply: ReplyState): number;
}

/** A reply without new text for this long, seconds, no longer counts as growing. */
const LIVE = 2;
/** Seconds that the start of a reply is remembered. */
const STARTS_KEPT = 300;
/** Least planned gap between two calls of one reply, seconds. */
const LEAST_GAP = 0.35;

/**
 * Spends a budget so that the text of its replies waits as little as possible to be seen: each call when the integral
 * of what is unseen has reached the price of a call, finals before first posts before edits, never more than the
 * budget has.
 */
export function createPacer(budget: Budget): OpenPacer {
  const replies = new Map<number, ReplyState>();
  const flights = new Map<number, { call: { kind: CallKind; room: string }; at: number }>();
  let starts: number[] = [];
  let joined = 0;
  let lastCall = -Infinity;

  function toLive(now: number): ReplyState[] {
    return [...replies.values()].filter((reply) => !reply.ended && now - reply.lastText < LIVE);
  }

  function toMoment(now: number): Moment {
    starts = starts.filter((at) => at > now - STARTS_KEPT);
    const live = toLive(now);
    const unfinished = [...replies.values()].filter(isUnfinished).length;
    const demand: Demand = { now, live, active: Math.max(1, live.length), unfinished, starts };
    const { active } = demand;
    return {
      now,
      budget,
      active,
      G: Math.max(LEAST_GAP / active, budget.gap(demand)),
      z: live.reduce((sum, { rate }) => sum + Math.sqrt(Math.max(rate, 1) / 2), 0),
      R: budget.reserve(demand),
      lastCall,
    };
  }

  function step(now: number): Step {
    let until = Infinity;
    let chosen: { number: number; reply: ReplyState; urgency: Urgency } | undefined;
    let moment: Moment | undefined;
    for (const [number, reply] of replies) {
      if (!isWaiting(reply)) continue;
      moment ??= toMoment(now);
      const candidate = { number, reply, urgency: toUrgency(reply, moment) };
      if (candidate.urgency.at > now) until = Math.min(until, candidate.urgency.at);
      else if (chosen === undefined || comesBefore(candidate, chosen, now)) chosen = candidate;
    }
    if (chosen === undefined) return until === Infinity ? { type: "idle" } : { type: "wait", until };

    const { number, reply } = chosen;
    const call = { kind: chosen.urgency.kind, room: reply.room };
    budget.sent(call, now);
    applySend(reply, call.kind, now);
    flights.set(number, { call, at: now });
    lastCall = now;
    return { type: "send", reply: number, kind: call.kind };
  }

  return {
    join(_now, room, _isSpare, first) {
      joined += 1;
      replies.set(joined, createReplyState(room ?? `reply ${joined}`, first));
      return joined;
    },
    text(number, units, now) {
      const reply = replies.get(number);
      if (reply === undefined || units <= 0) return;
      if (reply.total === 0) starts.push(now);
      applyText(reply, units, now);
    },
    end(number) {
      const reply = replies.get(number);
      if (reply !== undefined) applyEnd(reply);
    },
    leave: (number) => void replies.delete(number),
    growing: (now) => toLive(now).length,
    find: (number) => replies.get(number),
    release(number) {
      const reply = replies.get(number);
      replies.delete(number);
      // What it asks for is no demand here.
      if (reply !== undefined && reply.acked === 0) starts = starts.filter((at) => at !== reply.firstText);
      return reply;
    },
    adopt(reply) {
      joined += 1;
      replies.set(joined, Object.assign(reply, { failures: 0, notBefore: -Infinity }));
      if (reply.total > 0) starts = [...starts, reply.firstText].sort((a, b) => a - b);
      return joined;
    },
    step,
    done(number, written, now) {
      const flight = flights.get(number);
      if (flight === undefined) return;
      flights.delete(number);
      budget.done(flight.call, written.kind ?? flight.call.kind, flight.at, written.answer, now);
      const reply = replies.get(number);
      if (reply !== undefined) applyWritten(reply, written, now);
    },
    keepUntil: () => budget.keepUntil(),
  };
}

interface Candidate {
  reply: ReplyState;
  urgency: Urgency;
}

function comesBefore(a: Candidate, b: Candidate, now: number): boolean {
  if (a.urgency.rank !== b.urgency.rank) return a.urgency.rank < b.urgency.rank;
  if (a.urgency.rank === 2) return toArea(a.reply, now) > toArea(b.reply, now);
  return a.reply.oldest < b.reply.oldest;
}
