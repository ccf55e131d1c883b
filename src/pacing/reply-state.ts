import { toBackoff } from "./backoff.ts";
import type { CallKind, Written } from "./call.ts";

/** A pause counts as at most this much time in the estimate of a reply's rate, seconds. */
const MAX_PAUSE = 0.5;
/** Bounds of the span over which the rate is estimated, seconds. */
const MIN_SPAN = 0.15;
const MAX_SPAN = 4;
/** Deltas closer than this came with one read of the network and say nothing about the gaps between arrivals, seconds. */
const SAME_READ = 0.002;

/** What was unseen when a call began: it comes back when the call fails. */
interface Flight {
  at: number;
  kind: CallKind;
  sent: number;
  area: number;
  backlog: number;
  oldest: number;
  /** Began after the end was known. */
  isFinal: boolean;
}

/** One reply in a pacer. Units are characters, times seconds. */
export interface ReplyState {
  room: string;
  /** Units that arrived, that calls have carried, that the platform accepted. */
  total: number;
  sent: number;
  acked: number;
  /** Integral of the backlog since the last call, as of `areaAt`, unit-seconds. */
  area: number;
  areaAt: number;
  firstText: number;
  lastText: number;
  /** Arrival of the oldest text that no call has carried; Infinity without one. */
  oldest: number;
  lastSend: number;
  edits: number;
  /** Mean gap between arrivals, seconds; undefined before the second one. */
  arrivalGap: number | undefined;
  /** Time that counts in the estimate of the rate, seconds. */
  span: number;
  rate: number;
  next: CallKind;
  ended: boolean;
  /** The reply itself has one more call to make at once. */
  owes: boolean;
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
    owes: false,
    flight: undefined,
    failures: 0,
    notBefore: -Infinity,
  };
}

export function toBacklog(reply: ReplyState): number {
  return reply.total - reply.sent;
}

export function isWaiting(reply: ReplyState): boolean {
  return reply.flight === undefined && (reply.owes || toBacklog(reply) > 0);
}

/** Whether the reply has begun and its last call has not: also one that has ended needs a call kept for it until then. */
export function isUnfinished({ total, flight }: ReplyState): boolean {
  return total > 0 && flight?.isFinal !== true;
}

export function toArea(reply: ReplyState, now: number): number {
  return reply.area + toBacklog(reply) * (now - reply.areaAt);
}

/** Takes in new text and what its arrival says about the reply's rate. */
export function applyText(reply: ReplyState, units: number, now: number): void {
  advance(reply, now);
  const gap = reply.total === 0 ? 0 : now - reply.lastText;
  if (reply.total === 0) reply.firstText = now;
  else if (gap >= SAME_READ) {
    const seen = Math.min(gap, 2);
    reply.arrivalGap = reply.arrivalGap === undefined ? seen : 0.85 * reply.arrivalGap + 0.15 * seen;
  }
  const step = Math.min(gap, MAX_PAUSE);
  reply.span += step;
  const span = Math.min(Math.max(reply.span, MIN_SPAN), MAX_SPAN);
  reply.rate = reply.rate * Math.exp(-step / span) + units / span;
  if (toBacklog(reply) === 0) reply.oldest = now;
  reply.total += units;
  reply.lastText = now;
}

export function applyEnd(reply: ReplyState): void {
  reply.ended = true;
  reply.owes = true;
}

/** A call begins: it carries all text there is. */
export function applySend(reply: ReplyState, kind: CallKind, now: number): void {
  advance(reply, now);
  reply.flight = {
    at: now,
    kind,
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
  reply.owes = false;
  if (kind !== "post") reply.edits += 1;
}

/** A call has ended: a failed one gives back what it carried. */
export function applyWritten(reply: ReplyState, { answer, behind, next }: Written, now: number): void {
  const { flight } = reply;
  if (flight === undefined) return;
  advance(reply, now);
  reply.flight = undefined;
  if (answer.ok) {
    reply.acked = flight.sent;
    reply.failures = 0;
    reply.next = next ?? "edit";
    // While text grows, what came during the call is paced as ever; only the rest of what the call left out is due.
    if (reply.ended) reply.owes = behind || !flight.isFinal;
    else reply.owes = behind && (next === "post" || toBacklog(reply) === 0);
    return;
  }
  reply.sent = reply.acked;
  reply.area += flight.area + flight.backlog * (now - flight.at);
  reply.oldest = Math.min(flight.oldest, reply.oldest);
  reply.owes ||= reply.ended || flight.backlog === 0;
  if (answer.retryAfter !== undefined) return;
  reply.failures += 1;
  reply.notBefore = now + toBackoff(reply.failures);
}

function advance(reply: ReplyState, now: number): void {
  reply.area = toArea(reply, now);
  reply.areaAt = now;
}
