import type { CallKind, CallResult, KnownCall, Pacer, PacerStep, Written } from "../port/pace.ts";
import type { Budget, Call, Demand } from "./budget.ts";

/** Paces the replies of one budget. A reply can move to another pacer. */
export interface BudgetPacer extends Pacer {
  countGrowing(now: number): number;
  find(reply: number): Readonly<ReplyState> | undefined;
  /** Removes a reply that is not waiting for a call's response, and returns its state for `adopt`. */
  release(reply: number): ReplyState | undefined;
  /** Adds a reply that another pacer released, and returns its number. Its earlier failures cause no delay here. */
  adopt(reply: ReplyState): number;
  recall(calls: readonly KnownCall[]): void;
}

/** A reply counts as growing until it has got no new text for this long. */
const GROWS_FOR_MS = 2_000;
/** A reply's start is remembered for this long. */
const STARTS_KEPT_MS = 300_000;
/** Shortest planned gap between two calls of one reply. */
const LEAST_GAP_MS = 350;
/** Assumed duration of another process's call, because only its start is known. */
const USUAL_TRIP_MS = 300;
/** Lowest assumed rate of a growing reply. */
const LEAST_RATE_UNITS_PER_MS = 0.001;

/**
 * Spends a budget so that text waits as little as possible. A call is due when the integral of unseen text over time
 * reaches the price of a call. Final edits go before first posts, and first posts before other edits.
 */
export function createPacer(budget: Budget): BudgetPacer {
  const replies = new Map<number, ReplyState>();
  const flights = new Map<number, { call: Call; at: number }>();
  let starts: number[] = [];
  let joined = 0;
  let lastCall = -Infinity;

  function toGrowing(now: number): ReplyState[] {
    return [...replies.values()].filter((reply) => !reply.ended && now - reply.lastText < GROWS_FOR_MS);
  }

  function toMoment(now: number): Moment {
    if ((starts[0] ?? Infinity) <= now - STARTS_KEPT_MS) starts = starts.filter((at) => at > now - STARTS_KEPT_MS);
    const growing = toGrowing(now);
    const unfinished = [...replies.values()].filter(isUnfinished).length;
    const demand: Demand = { now, growing, active: Math.max(1, growing.length), unfinished, starts };
    const { active } = demand;
    return {
      now,
      budget,
      active,
      gap: Math.max(LEAST_GAP_MS / active, budget.gap(demand)),
      rootRates: growing.reduce((sum, { rate }) => sum + Math.sqrt(Math.max(rate, LEAST_RATE_UNITS_PER_MS) / 2), 0),
      reserve: budget.reserve(demand),
      lastCall,
      beginAt: budget.beginAt?.(demand) ?? now,
    };
  }

  function step(now: number): PacerStep {
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
    join({ room, first } = {}) {
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
    countGrowing: (now) => toGrowing(now).length,
    find: (number) => replies.get(number),
    release(number) {
      const reply = replies.get(number);
      replies.delete(number);
      // Forget the reply's start here, because the reply's next pacer counts it.
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
      const { kind = flight.call.kind, answer } = written;
      budget.done(flight.call, { kind, sentAt: flight.at, answer }, now);
      const reply = replies.get(number);
      if (reply !== undefined) applyWritten(reply, written, now);
    },
    recall(calls) {
      for (const call of calls) {
        lastCall = Math.max(call.sentAt, lastCall);
        count(budget, { ...call, sentAt: lastCall });
        if (call.kind === "post") starts = [...starts, lastCall].sort((a, b) => a - b);
      }
    },
    keepUntil: () => budget.keepUntil(),
  };
}

function count(budget: Budget, { kind, room, sentAt, refusedForMs }: KnownCall): void {
  const call = { kind, room };
  const answer: CallResult = refusedForMs === undefined ? { ok: true } : { ok: false, retryAfterMs: refusedForMs };
  budget.sent(call, sentAt);
  budget.done(call, { kind, sentAt, answer }, sentAt + (refusedForMs === undefined ? USUAL_TRIP_MS : 0));
}

interface Candidate {
  reply: ReplyState;
  urgency: Urgency;
}

function comesBefore(a: Candidate, b: Candidate, now: number): boolean {
  if (a.urgency.rank !== b.urgency.rank) return a.urgency.rank < b.urgency.rank;
  if (a.urgency.rank === EDIT_RANK) return toArea(a.reply, now) > toArea(b.reply, now);
  return a.reply.oldest < b.reply.oldest;
}

// --- the state of one reply ---

/** The estimate of a reply's rate counts a longer pause as this long. */
const MAX_PAUSE_MS = 500;
/** Limits of the time span from which the rate is estimated. */
const MIN_SPAN_MS = 150;
const MAX_SPAN_MS = 4_000;
/** If two deltas are closer together than this, they came with the same network read and count as one arrival. */
const SAME_READ_MS = 2;
/** The mean gap between arrivals counts a longer gap as this long. */
const MAX_ARRIVAL_GAP_MS = 2_000;
/** Weight of the newest gap in the mean gap. */
const NEWEST_GAP = 0.15;

/** The state before a call. It is restored if the call fails. */
interface Flight {
  at: number;
  sent: number;
  area: number;
  backlog: number;
  oldest: number;
  /** True if the call started after the reply's text had ended. */
  isFinal: boolean;
}

/** One reply in a pacer. Units of text are characters, times are milliseconds, and rates are units per millisecond. */
export interface ReplyState {
  room: string;
  /** Counts of units: those that have arrived, those in calls until now, and those that the platform has accepted. */
  total: number;
  sent: number;
  acked: number;
  /** Integral of the unsent text from the last call to `areaAt`, in unit-milliseconds. */
  area: number;
  areaAt: number;
  firstText: number;
  lastText: number;
  /** When the oldest unsent text arrived; Infinity if all text was sent. */
  oldest: number;
  lastSend: number;
  edits: number;
  /** Mean gap between arrivals; undefined before the second arrival. */
  arrivalGap: number | undefined;
  /** Time from which the rate is estimated. */
  span: number;
  rate: number;
  next: CallKind;
  ended: boolean;
  needsCall: boolean;
  flight: Flight | undefined;
  failures: number;
  notBefore: number;
}

export function createReplyState(room: string, next: CallKind = "post"): ReplyState {
  return {
    room,
    total: 0,
    sent: 0,
    acked: 0,
    area: 0,
    areaAt: 0,
    firstText: Infinity,
    lastText: -Infinity,
    oldest: Infinity,
    lastSend: -Infinity,
    edits: 0,
    arrivalGap: undefined,
    span: 0,
    rate: 0,
    next,
    ended: false,
    needsCall: false,
    flight: undefined,
    failures: 0,
    notBefore: -Infinity,
  };
}

export function toBacklog(reply: ReplyState): number {
  return reply.total - reply.sent;
}

export function isWaiting(reply: ReplyState): boolean {
  return reply.flight === undefined && (reply.needsCall || toBacklog(reply) > 0);
}

/**
 * True from a reply's first text until the start of its last call. During that time, one call must stay reserved for
 * the reply.
 */
function isUnfinished({ total, flight }: ReplyState): boolean {
  return total > 0 && flight?.isFinal !== true;
}

export function toArea(reply: ReplyState, now: number): number {
  return reply.area + toBacklog(reply) * (now - reply.areaAt);
}

/** Records new text, and updates the estimate of the reply's rate. */
export function applyText(reply: ReplyState, units: number, now: number): void {
  advance(reply, now);
  const gap = reply.total === 0 ? 0 : now - reply.lastText;
  if (reply.total === 0) reply.firstText = now;
  else if (gap >= SAME_READ_MS) {
    const seen = Math.min(gap, MAX_ARRIVAL_GAP_MS);
    reply.arrivalGap = reply.arrivalGap === undefined ? seen : (1 - NEWEST_GAP) * reply.arrivalGap + NEWEST_GAP * seen;
  }
  const step = Math.min(gap, MAX_PAUSE_MS);
  reply.span += step;
  const span = Math.min(Math.max(reply.span, MIN_SPAN_MS), MAX_SPAN_MS);
  reply.rate = reply.rate * Math.exp(-step / span) + units / span;
  if (toBacklog(reply) === 0) reply.oldest = now;
  reply.total += units;
  reply.lastText = now;
}

export function applyEnd(reply: ReplyState): void {
  reply.ended = true;
  reply.needsCall = true;
}

/** Records the start of a call, which sends all current text. */
export function applySend(reply: ReplyState, kind: CallKind, now: number): void {
  advance(reply, now);
  reply.flight = {
    at: now,
    sent: reply.total,
    area: reply.area,
    backlog: toBacklog(reply),
    oldest: reply.oldest,
    isFinal: reply.ended,
  };
  reply.sent = reply.total;
  reply.area = 0;
  reply.oldest = Infinity;
  reply.lastSend = now;
  reply.needsCall = false;
  if (kind !== "post") reply.edits += 1;
}

/** Records the end of a call. If the call failed, its text counts as unsent again. */
export function applyWritten(reply: ReplyState, { answer, behind, next }: Written, now: number): void {
  const { flight } = reply;
  if (flight === undefined) return;
  advance(reply, now);
  reply.flight = undefined;
  if (answer.ok) {
    reply.acked = flight.sent;
    reply.failures = 0;
    reply.next = next ?? "edit";
    // While the reply grows, text that arrived during the call is due at the usual pace. Text that the call had to
    // leave out is due at once.
    if (reply.ended) reply.needsCall = behind || !flight.isFinal;
    else reply.needsCall = behind && (next === "post" || toBacklog(reply) === 0);
    return;
  }
  reply.sent = reply.acked;
  reply.area += flight.area + flight.backlog * (now - flight.at);
  reply.oldest = Math.min(flight.oldest, reply.oldest);
  reply.needsCall ||= reply.ended || flight.backlog === 0;
  if (answer.retryAfterMs !== undefined) return;
  reply.failures += 1;
  reply.notBefore = now + toBackoffMs(reply.failures);
}

function advance(reply: ReplyState, now: number): void {
  reply.area = toArea(reply, now);
  reply.areaAt = now;
}

// --- when its next call is due ---

/** The first post waits at most this long, so that it shows more than one token. */
const FIRST_HOLD_MS = 100;
/** If the gaps between arrivals are longer, the first post does not wait, because little text would be added. */
const FIRST_GAP_MS = 25;
/** A shorter pause in the text does not count as a lull. */
const LULL_MS = 60;
/** After this time without text, the rest of a burst is shown if the budget is rich. */
const LONG_PAUSE_MS = 500;
/** If other replies grow too, a reply is due after the planned gap, once it has reached this share of its price. */
const EARLY_PRICE = 0.6;
/** Maximum wait of any text, as a multiple of the planned gap between two calls of its reply. */
const MOST_GAPS = 1.5;
/**
 * If the gap between arrivals is at least this share of the reply's gap, text arrives in lumps, and each lump counts as
 * complete at once.
 */
const LUMP_GAPS = 0.35;
/** If text does not arrive in lumps, its arrival counts as paused after this multiple of the mean gap. */
const LULL_ARRIVALS = 4;
/** Minimum text for an edit in a lull, as a share of the text that usually arrives in one planned gap. */
const WORTH_GAPS = 0.3;
/** Credit that returns within this time counts as available. */
const SOON_MS = 800;
/** An edit can use credit reserved for finals if that credit returns within this time. */
const REFILL_MS = 4_000;
/**
 * A reply does not start yet if its final call would have to wait longer than this. It may end in the meantime, and
 * then needs only one post.
 */
const LONGEST_FINAL_WAIT_MS = 8_000;
/** The longest wait for the first text of a reply that does not start yet. */
const LONGEST_HOLD_MS = 20_000;
/** Minimum time between two checks for credit. */
const LEAST_WAIT_MS = 2;

export interface Moment {
  now: number;
  budget: Budget;
  /** Planned time between two calls of the budget. */
  gap: number;
  /** Number of growing replies, but at least 1. */
  active: number;
  /** Sum of sqrt(rate / 2) over the growing replies. The more replies need edits, the more an edit costs. */
  rootRates: number;
  reserve: number;
  lastCall: number;
  /** When one more reply can start and still have a call for its final. */
  beginAt: number;
}

/** Calls with a lower rank go first: finals, then first posts, then edits. */
export type Rank = 0 | 1 | typeof EDIT_RANK;
export const EDIT_RANK = 2;

export interface Urgency {
  rank: Rank;
  kind: CallKind;
  /** When the call is due and permitted: not after `now` if the call can start at once. */
  at: number;
}

/** Returns the next call of a reply that has something to show: its kind, rank and time within the budget. */
export function toUrgency(reply: ReplyState, moment: Moment): Urgency {
  const { now, budget, reserve } = moment;
  const { rank, kind, due } = toWish(reply, moment);
  const wished = Math.max(due, reply.notBefore);
  if (wished > now) return { rank, kind, at: wished };

  const call: Call = { kind, room: reply.room };
  const credit = budget.credit(call, now);
  let needs = 1;
  if (rank === EDIT_RANK && !(credit >= 1 && budget.creditAt(call, 1 + reserve, now) <= now + REFILL_MS))
    needs = 1 + reserve;
  if (credit >= needs) return { rank, kind, at: now };
  return { rank, kind, at: Math.max(budget.creditAt(call, needs, now), now + LEAST_WAIT_MS) };
}

function toWish(reply: ReplyState, moment: Moment): { rank: Rank; kind: CallKind; due: number } {
  const { now } = moment;
  if (reply.ended) return { rank: 0, kind: reply.next === "post" ? "post" : "final", due: now };
  if (reply.next === "post" && reply.acked === 0) return { rank: 1, kind: "post", due: toFirstDue(reply, moment) };
  if (reply.needsCall || reply.next === "post") return { rank: 1, kind: reply.next, due: now };
  return { rank: EDIT_RANK, kind: "edit", due: toEditDue(reply, moment) };
}

/**
 * Returns when the first post is due. It waits until there is credit for its final, and after that only while more text
 * will probably arrive soon.
 */
function toFirstDue({ firstText, lastText, arrivalGap }: ReplyState, { now, beginAt }: Moment): number {
  if (beginAt > now + LONGEST_FINAL_WAIT_MS) {
    return Math.min(beginAt - LONGEST_FINAL_WAIT_MS, firstText + LONGEST_HOLD_MS);
  }
  const end = firstText + FIRST_HOLD_MS;
  if (arrivalGap !== undefined && lastText + arrivalGap > end) return lastText;
  return Math.min(end, lastText + Math.max(FIRST_GAP_MS, 2 * (arrivalGap ?? 0)));
}

/**
 * Returns when the next edit is due: when the integral of unseen text reaches the price of a call. For steady text this
 * is after the planned gap, for a burst at its end. Several replies share the calls by the square roots of their rates.
 * This minimizes the total wait, see docs/pacing.md.
 */
function toEditDue(reply: ReplyState, moment: Moment): number {
  const { now, budget, gap, active, rootRates, lastCall } = moment;
  const isFirst = reply.edits === 0 && active === 1;
  const ownGap = isFirst && budget.isRich(now, gap * active) ? Math.min(gap, budget.firstGapMs) : gap;
  const price = (ownGap * Math.max(rootRates, Math.sqrt(reply.rate / 2))) ** 2;

  let due = momentOfArea(reply, price, now);
  if (active > 1) due = Math.min(due, Math.max(lastCall + gap, momentOfArea(reply, EARLY_PRICE * price, now)));
  due = Math.min(due, reply.oldest + MOST_GAPS * gap * active);
  due = Math.min(due, toLullDue(reply, moment, due));
  return Math.max(due, reply.lastSend + budget.minGapMs);
}

/** Returns when an edit can happen earlier than `due` because of a lull; `due` if there is no lull. */
function toLullDue(reply: ReplyState, moment: Moment, due: number): number {
  const { budget, now, gap, active } = moment;
  const arrivalGap = reply.arrivalGap ?? 0;
  const isLump = arrivalGap >= LUMP_GAPS * gap * active;
  const lull = reply.lastText + (isLump ? LULL_MS : Math.max(LULL_MS, LULL_ARRIVALS * arrivalGap));
  const isWorth = toBacklog(reply) >= WORTH_GAPS * reply.rate * gap * active;
  if (lull < due && isWorth && canSpare(reply, moment, Math.max(now, lull))) return lull;

  const pause = reply.lastText + LONG_PAUSE_MS;
  const at = Math.max(now, pause);
  if (pause < due && budget.isRich(at, gap * active) && canSpare(reply, moment, at)) return pause;
  return due;
}

/** True if an early edit leaves enough calls for the edits that are due. */
function canSpare(reply: ReplyState, { budget, reserve }: Moment, at: number): boolean {
  const call: Call = { kind: "edit", room: reply.room };
  const credit = budget.credit(call, at);
  if (credit > budget.spare + reserve) return true;
  return credit > reserve && budget.credit(call, at + SOON_MS) > credit;
}

function momentOfArea(reply: ReplyState, area: number, now: number): number {
  const missing = area - toArea(reply, now);
  return missing <= 0 ? now : now + missing / toBacklog(reply);
}

/** Returns the wait in milliseconds after `failures` failures in a row, not counting rate limits. */
export function toBackoffMs(failures: number): number {
  return Math.min(500 * 2 ** (failures - 1), 8_000);
}
