import type { Budget, Call, Demand, Growth } from "../../../src/pacing/budget.ts";
import { createCallLog, type Limit } from "../../../src/pacing/call-log.ts";
import { createEvenPacer } from "../../../src/pacing/even.ts";
import { type BudgetPacer, createPacer, isWaiting } from "../../../src/pacing/pacer.ts";
import type { Pacer, PacerStep } from "../../../src/port/pace.ts";

/** The time between two replies to one command, because its response URL accepts only five within half an hour. */
const RESPONSE_GAP_MS = 2_000;

/**
 * Paces one workspace. Replies are native streams while Slack allows starting them, about nineteen a minute. Further
 * replies are edited messages.
 */
export function createSlackPacer(): Pacer {
  return createTwoWayPacer(createSlackBudget("append"), createSlackBudget("update"));
}

/** Paces ephemeral messages, which Slack counts per command. */
export function createResponsePacer(): Pacer {
  return createEvenPacer({ gapMs: RESPONSE_GAP_MS });
}

// --- two ways of writing ---

/** While at most this many replies use the preferred way, none of them would be faster in the fallback. */
const MAX_AT_EASE = 3;

interface ReplyRoute {
  isFallback: boolean;
  /** The reply's number in the preferred or the fallback pacer. */
  number: number;
}

/**
 * Paces replies that can be written in two ways with separate limits. A reply chooses its way when its first post is
 * due, and never returns to the preferred way. It uses the fallback if the preferred way has no calls left, if the
 * reply has already ended, or if many replies grow and the fallback has more calls for it.
 */
function createTwoWayPacer(preferred: Budget, fallback: Budget): Pacer {
  const pacers = { preferred: createPacer(preferred), fallback: createPacer(fallback) };
  const routes = new Map<number, ReplyRoute>();
  /** The routes of the calls in flight, because a reply can end before its call does. */
  const flights = new Map<number, ReplyRoute>();
  let joined = 0;

  const pacerOf = ({ isFallback }: ReplyRoute): BudgetPacer => (isFallback ? pacers.fallback : pacers.preferred);

  function divert(route: ReplyRoute): void {
    const reply = pacers.preferred.release(route.number);
    if (reply !== undefined) Object.assign(route, { isFallback: true, number: pacers.fallback.adopt(reply) });
  }

  /** True if a reply should use the fallback: it has ended, or the preferred way has no calls left, or too few. */
  function isCrowdedOut(route: ReplyRoute, now: number): boolean {
    const reply = route.isFallback ? undefined : pacers.preferred.find(route.number);
    if (reply === undefined || reply.next !== "post" || !isWaiting(reply)) return false;
    return (
      reply.ended || preferred.credit({ kind: "post", room: reply.room }, now) < 1 || hasMoreToSpare(reply.room, now)
    );
  }

  /** True if many replies grow in the preferred way, and each reply in the fallback would still get more calls. */
  function hasMoreToSpare(room: string, now: number): boolean {
    const growing = pacers.preferred.countGrowing(now);
    if (growing <= MAX_AT_EASE || fallback.credit({ kind: "post", room }, now) < 1) return false;
    const edit: Call = { kind: "edit", room };
    return (
      fallback.credit(edit, now) / (pacers.fallback.countGrowing(now) + 1) >= preferred.credit(edit, now) / growing
    );
  }

  function toOuter(step: PacerStep & { type: "send" }, isFallback: boolean): PacerStep {
    const [reply = 0, route] =
      [...routes].find(([, it]) => it.isFallback === isFallback && it.number === step.reply) ?? [];
    if (route !== undefined) flights.set(reply, { ...route });
    return { ...step, reply, ...(isFallback && { isFallback }) };
  }

  return {
    join({ room, isFallback = false, first } = {}) {
      joined += 1;
      // Gives a reply without a room a room that no other reply has in either pacer.
      const own = { room: room ?? `reply ${joined}`, first };
      routes.set(joined, { isFallback, number: (isFallback ? pacers.fallback : pacers.preferred).join(own) });
      return joined;
    },
    text(reply, units, now) {
      const route = routes.get(reply);
      if (route !== undefined) pacerOf(route).text(route.number, units, now);
    },
    end(reply) {
      const route = routes.get(reply);
      if (route !== undefined) pacerOf(route).end(route.number);
    },
    leave(reply) {
      const route = routes.get(reply);
      if (route !== undefined) pacerOf(route).leave(route.number);
      routes.delete(reply);
    },
    step(now) {
      for (const route of routes.values()) if (isCrowdedOut(route, now)) divert(route);
      const step = pacers.preferred.step(now);
      if (step.type === "send") return toOuter(step, false);
      const other = pacers.fallback.step(now);
      if (other.type === "send") return toOuter(other, true);
      if (step.type === "idle") return other;
      return other.type === "idle" || step.until <= other.until ? step : other;
    },
    done(reply, written, now) {
      const flight = flights.get(reply);
      if (flight === undefined) return;
      flights.delete(reply);
      pacerOf(flight).done(flight.number, written, now);
      const route = routes.get(reply);
      if (route !== undefined && written.isFallback === true && !route.isFallback) divert(route);
    },
    recall(calls) {
      pacers.preferred.recall(calls.filter(({ isFallback }) => !isFallback));
      pacers.fallback.recall(calls.filter(({ isFallback }) => isFallback));
    },
    keepUntil: () => Math.max(pacers.preferred.keepUntil(), pacers.fallback.keepUntil()),
  };
}

// --- the limits of one workspace ---

/** `update`: `chat.postMessage` and `chat.update`. `append`: streams; a post starts one and a final stops it. */
export type SlackMethod = "update" | "append";

/** Slack itself ends a stream after this time. */
const STREAM_LASTS_MS = 300_000;
/**
 * Slack documents limits of 50, 100 and 20 calls per minute and method. One or two of these calls stay unused, because
 * clocks differ.
 */
const UPDATE_CALLS = 49;
const APPEND_CALLS = 98;
const STREAM_CALLS = 19;
const WINDOW_MS = 60_000;
/** Added to every window, because requests do not arrive evenly spaced. */
const MARGIN_MS = 500;
/** `chat.postMessage` allows one post per second and channel. */
const POST_PAUSE_MS = 1_000;
const PLAN_HOLDS_MS = 100;
const UPDATE_GAP_MS = 450;
const APPEND_GAP_MS = 350;
/** Calls are plentiful only while a reply's planned gap is shorter than this. */
const RICH_GAP_MS = 900;
/** After Slack refused a call, the gap between calls is this many times the gap that the limit allows. */
const TIGHT_STRETCH = 1.15;
/** The number of calls that the plan for native streams leaves unused. Only appends use them. */
const APPEND_RESERVE = 2;
const STARTS_MATTER_MS = 300_000;

interface Plan {
  at: number;
  key: string;
  gap: number;
  reserve: number;
}

/** One workspace's limits. Each method has a number of calls; each becomes available again after a minute. */
export function createSlackBudget(method: SlackMethod): Budget {
  const isAppend = method === "append";
  const calls = isAppend ? APPEND_CALLS : UPDATE_CALLS;
  const countedMs = WINDOW_MS + MARGIN_MS;
  const edits = createCallLog(calls, countedMs);
  const begins = createCallLog(STREAM_CALLS, countedMs);
  const finals = isAppend ? createCallLog(STREAM_CALLS, countedMs) : edits;
  const rooms = new Map<string, Limit>();
  /** When each open stream started. One call is reserved for each stream's stop. */
  let open: number[] = [];
  let plan: Plan | undefined;
  let version = 0;
  let lastCall = -Infinity;

  function limitOf({ kind, room }: Call): Limit {
    if (kind === "final") return finals;
    if (kind === "edit") return edits;
    return isAppend ? begins : turnsOf(room);
  }

  function turnsOf(room: string): Limit {
    const known = rooms.get(room);
    if (known !== undefined) return known;
    const turns = createRoomTurns(POST_PAUSE_MS);
    rooms.set(room, turns);
    return turns;
  }

  function openAt(at: number): number {
    return open.filter((start) => start > at - STREAM_LASTS_MS).length;
  }

  /** Reserves a call for stopping each open stream, because a stream that is never stopped seems to grow forever. */
  function credit(call: Call, at: number): number {
    const free = limitOf(call).credit(at);
    return isAppend && call.kind === "post" ? Math.min(free, finals.credit(at) - openAt(at)) : free;
  }

  function creditAt(call: Call, needs: number, from: number): number {
    const at = limitOf(call).creditAt(needs, from);
    if (!isAppend || call.kind !== "post") return at;
    return Math.max(at, finals.creditAt(needs + openAt(from), from));
  }

  /** The number of calls to keep for the finals of the current replies, including replies that have ended. */
  function toOwed({ now, unfinished, starts }: Demand): number {
    if (isAppend) return APPEND_RESERVE;
    const recent = starts.length - 1 - starts.findLastIndex((at) => at <= now - WINDOW_MS);
    return toReserve(unfinished + 0.1 * recent);
  }

  function toReserve(finals: number): number {
    // Keeps up to half: with less, twenty replies that end together would wait most of a minute for their finals.
    return Math.min(Math.max(Math.ceil(finals), 2), Math.floor(calls / 2));
  }

  function planFor(demand: Demand): Plan {
    const { now, active, growing, starts } = demand;
    const owed = toOwed(demand);
    const key = `${version} ${growing.length} ${active} ${starts.length} ${owed}`;
    if (plan !== undefined && plan.key === key && now - plan.at < PLAN_HOLDS_MS) return plan;
    const minGapMs = isAppend ? APPEND_GAP_MS : UPDATE_GAP_MS;
    const bank = { calls, windowMs: WINDOW_MS, countedMs, countAt: edits.count, reserve: owed, minGapMs };
    plan = { at: now, key, gap: planGap(demand, bank), reserve: toReserve(owed + countComingFinals(demand, bank)) };
    return plan;
  }

  function reserve(demand: Demand): number {
    if (isAppend) return 0;
    // After a refusal, the real limit can be a bucket for two calls, which could never keep a larger reserve.
    return edits.isTight(demand.now) ? 1 : planFor(demand).reserve;
  }

  function gap(demand: Demand): number {
    return edits.isTight(demand.now) ? (TIGHT_STRETCH * WINDOW_MS) / calls : planFor(demand).gap;
  }

  function forgetRooms(now: number): void {
    for (const [room, turns] of rooms) if (turns.keepUntil() < now) rooms.delete(room);
  }

  return {
    firstGapMs: 280,
    minGapMs: 300,
    spare: 2,
    reserve,
    beginAt({ now, unfinished }) {
      if (isAppend || edits.isTight(now)) return now;
      return finals.creditAt(Math.min(unfinished, Math.floor(calls / 2)), now);
    },
    gap,
    isRich: (at, gapPerReply) => gapPerReply < RICH_GAP_MS && edits.count(at) < 0.4 * calls && !edits.isTight(at),
    credit,
    creditAt,
    sent(call, now) {
      forgetRooms(now);
      if (isAppend && call.kind === "post") open = [...open.filter((start) => start > now - STREAM_LASTS_MS), now];
      limitOf(call).sent(now);
      lastCall = now;
      version += 1;
    },
    done(planned, { kind: made, sentAt, answer }, now) {
      const limit = limitOf({ ...planned, kind: made });
      if (limit !== limitOf(planned)) {
        limitOf(planned).done({ ok: true }, now);
        limit.sent(sentAt);
      }
      limit.done(answer, now);
      if (planned.kind === "post" && !(answer.ok && made === "post")) open = open.filter((start) => start !== sentAt);
      if (made === "final" && answer.ok) open = open.slice(1);
      if (!answer.ok) version += 1;
    },
    keepUntil: () => Math.max(lastCall + STARTS_MATTER_MS, edits.keepUntil(), begins.keepUntil(), finals.keepUntil()),
  };
}

/**
 * A limit of one call per `pauseMs`, counted at the platform. This process does not know exactly when a call arrives
 * there, but it is at least half of the fastest round trip before the response. The pause starts at the latest possible
 * arrival, so the platform sees the calls at least that far apart.
 */
export function createRoomTurns(pauseMs: number): Limit {
  let inFlight = 0;
  let freeAt = -Infinity;
  let sentAt = -Infinity;
  let quickestMs = Infinity;
  return {
    credit: (at) => (inFlight === 0 && at >= freeAt ? 1 : 0),
    creditAt: (needs, from) => (inFlight > 0 || needs > 1 ? Infinity : Math.max(from, freeAt)),
    sent(now) {
      inFlight += 1;
      sentAt = now;
    },
    done(answer, now) {
      inFlight -= 1;
      quickestMs = Math.min(quickestMs, now - sentAt);
      const waitMs = answer.ok ? pauseMs - quickestMs / 2 : Math.max(pauseMs, answer.retryAfterMs ?? 0);
      freeAt = Math.max(freeAt, now + waitMs);
    },
    keepUntil: () => (inFlight > 0 ? Infinity : freeAt),
  };
}

// --- how far apart calls are planned ---

/**
 * A reply is expected to reach `USUAL_UNITS` characters, and to grow by at least `USUAL_REST_UNITS` and half of its
 * present text.
 */
const USUAL_UNITS = 2_600;
const USUAL_REST_UNITS = 400;
/** For replies that grow in parallel for longer than `LASTING_MS`, which replies of 400 tokens seldom do. */
const LONG_UNITS = 6_000;
const LONG_REST_UNITS = 1_000;
const LASTING_MS = 7_000;
/** A reply that grows for longer than this may use up the available calls, even if it is the only one. */
const OUTLASTING_MS = 10_000;
/** The assumed rate of a reply that has no measurements. */
const USUAL_RATE_UNITS_PER_MS = 0.24;
const MIN_RATE_UNITS_PER_MS = 0.04;
const MAX_RATE_UNITS_PER_MS = 0.6;
/** The plan compares demand and available calls at these times from now. The tightest one decides. */
const HORIZONS_MS = [2_000, 5_000, 10_000, 15_000, 20_000, 30_000, 40_000, 50_000, 60_500] as const;
/** The plan assumes that a future reply grows to this many characters. */
const COMING_UNITS = 600;
/** The plan counts only this share of the predicted replies. */
const BELIEF = 0.6;
/** Starts younger than this are a burst and not yet a rate. Starts older than `RATE_SPAN_MS` are ignored. */
const BURST_SPAN_MS = 7_500;
const RATE_SPAN_MS = 75_000;
/** The shortest time over which a rate is measured, because two starts close together are no rate. */
const MIN_RATE_SPAN_MS = 30_000;
/** If earlier replies used this share of the limit's calls, their rate counts in full. */
const LOADED = 0.1;
/** New replies per minute that make a workspace busy. */
const BUSY_PER_MINUTE = 15;
/** In a loaded workspace, the planned gap stays between these multiples of the time in which one call returns. */
const LEAST_SPACING = 0.9;
const MOST_SPACING = 1.5;
const MAX_GAP_MS = 10_000;

export interface BankState {
  calls: number;
  /** The platform's window, and the longer one in which the process's own calls count. */
  windowMs: number;
  countedMs: number;
  /** How many of the process's own calls still count at a future time. */
  countAt(at: number): number;
  reserve: number;
  minGapMs: number;
}

/**
 * Plans the gap between calls for a limit whose calls return one by one. The gap is the demand until some time divided
 * by the calls available until then, for the tightest of several times. With a known demand, it would be best to spend
 * the same number of calls in each second in which a reply grows. Here the demand is an estimate. `docs/pacing.md`
 * derives this.
 */
export function planGap(demand: Demand, bank: BankState): number {
  const { now, growing, active } = demand;
  const rates = growing.map(({ rate }) => clamp(rate, MIN_RATE_UNITS_PER_MS, MAX_RATE_UNITS_PER_MS));
  const mean = rates.length === 0 ? USUAL_RATE_UNITS_PER_MS : rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  const lasting = growing.filter(({ firstText }) => firstText < now - LASTING_MS).length > 1;
  const residuals = growing.map((reply) => toResidual(reply, active, lasting));
  const { load, startRate } = toLoad(demand, bank);
  // Many short replies are more likely than many long ones, until they last or the workspace is busy.
  const hope = active ** (lasting ? 0 : 0.5 * Math.max(0, 1 - (60_000 * startRate) / BUSY_PER_MINUTE));

  const asked = (aheadMs: number) => {
    const present = residuals.reduce((sum, rest) => sum + Math.min(rest, aheadMs), 0);
    const coming = BELIEF * startRate * aheadMs * Math.min(COMING_UNITS / mean, aheadMs / 2);
    return (growing.length === 0 ? Math.min(USUAL_UNITS / USUAL_RATE_UNITS_PER_MS, aheadMs) : present) + coming;
  };
  const there = (aheadMs: number) =>
    bank.calls - bank.countAt(now + aheadMs) - bank.reserve - BELIEF * startRate * aheadMs;
  const replyGap = Math.max(...HORIZONS_MS.map((aheadMs) => asked(aheadMs) / hope / Math.max(1, there(aheadMs))));

  // Spaces a long answer's calls near the rate at which calls return, so that it never uses them all up.
  const outlasts = growing.some(({ firstText }) => firstText < now - OUTLASTING_MS);
  const alone = outlasts ? (LEAST_SPACING * bank.windowMs) / bank.calls : 0;
  const gap = Math.max(clamp(replyGap, bank.minGapMs, MAX_GAP_MS) / active, alone);
  if (startRate === 0) return gap;
  const spacing = bank.windowMs / Math.max(bank.calls / 3, bank.calls - bank.windowMs * startRate);
  const least = (LEAST_SPACING * load * spacing) / hope;
  return Math.max(bank.minGapMs / active, alone, least, Math.min(gap, MOST_SPACING * spacing));
}

/** Counts future replies' finals for which no call will have returned. Edits leave a call unused for each. */
export function countComingFinals(demand: Demand, bank: BankState): number {
  const { now } = demand;
  const { startRate } = toLoad(demand, bank);
  const spent = bank.countAt(now);
  return Math.max(0, ...HORIZONS_MS.map((aheadMs) => startRate * aheadMs - (spent - bank.countAt(now + aheadMs))));
}

/**
 * Estimates how long a reply will grow, in milliseconds. A single reply counts double: only long ones reach the limit.
 */
function toResidual({ total, rate }: Growth, active: number, lasting: boolean): number {
  const believed = clamp(rate, MIN_RATE_UNITS_PER_MS, MAX_RATE_UNITS_PER_MS);
  if (lasting) return Math.max(LONG_UNITS - total, LONG_REST_UNITS) / believed;
  return ((1 + 1 / active) * Math.max(USUAL_UNITS - total, USUAL_REST_UNITS + 0.5 * total)) / believed;
}

/**
 * Estimates the workspace's load from 0 to 1, and the new replies per millisecond that the load makes likely. The load
 * is the share of calls that earlier replies used, squared, so that a single short answer hardly counts.
 */
function toLoad({ now, growing, starts }: Demand, bank: BankState): { load: number; startRate: number } {
  const old = growing.filter(({ firstText }) => firstText < now - BURST_SPAN_MS);
  // The demand already includes the calls of replies that still grow, and those replies are not new.
  const own = old.reduce((sum, { edits }) => sum + edits, 0);
  const before = bank.countAt(now) - bank.countAt(now + bank.countedMs - BURST_SPAN_MS);
  const load = clamp((before - own) / (LOADED * bank.calls), 0, 1) ** 2;
  const others = starts.filter((at) => !growing.some(({ firstText }) => firstText === at));
  return { load, startRate: load * toStartRate(others, now) };
}

/** New replies per millisecond since the first start that counts; 0 if the only starts are a burst. */
function toStartRate(starts: readonly number[], now: number): number {
  const old = starts.filter((at) => at < now - BURST_SPAN_MS && at > now - RATE_SPAN_MS);
  const [first] = old;
  return first === undefined ? 0 : old.length / (Math.max(now - first, MIN_RATE_SPAN_MS) - BURST_SPAN_MS);
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max);
}
