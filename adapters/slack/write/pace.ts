import type { Budget, Call, Demand, Growth } from "../../../src/pacing/budget.ts";
import { createCallLog, type Limit } from "../../../src/pacing/call-log.ts";
import { createEvenPacer } from "../../../src/pacing/even.ts";
import { type BudgetPacer, createPacer, isWaiting } from "../../../src/pacing/pacer.ts";
import type { Pacer, PacerStep } from "../../../src/port/pace.ts";

/** Time between two answers to one command: its response URL takes five within half an hour. */
const RESPONSE_GAP_MS = 2_000;

/**
 * The pace of one workspace: replies are native streams as long as those can be begun, about nineteen a minute, and
 * beyond that messages that are updated.
 */
export function createSlackPacer(): Pacer {
  return createTwoWayPacer(createSlackBudget("append"), createSlackBudget("update"));
}

/** The pace of what only one person sees, which is counted per command. */
export function createResponsePacer(): Pacer {
  return createEvenPacer({ gapMs: RESPONSE_GAP_MS });
}

// --- two ways of writing ---

/** With this many replies in the preferred way or fewer, none is better off in the fallback. */
const MAX_AT_EASE = 3;

interface ReplyRoute {
  isFallback: boolean;
  /** Its number in the pacer of that way. */
  number: number;
}

/**
 * Paces replies that can be written in two ways, each with its own limits. When the first post of a reply is due, the
 * reply takes the preferred way if that has room for one more, and the fallback if not, or if the reply is over already.
 * It never goes back. When many replies grow at once, a new one takes the fallback if it gets more calls there.
 */
function createTwoWayPacer(preferred: Budget, fallback: Budget): Pacer {
  const pacers = { preferred: createPacer(preferred), fallback: createPacer(fallback) };
  const routes = new Map<number, ReplyRoute>();
  /** Ways of the calls under way: a reply may leave before its call has ended. */
  const flights = new Map<number, ReplyRoute>();
  let joined = 0;

  const pacerOf = ({ isFallback }: ReplyRoute): BudgetPacer => (isFallback ? pacers.fallback : pacers.preferred);

  function divert(route: ReplyRoute): void {
    const reply = pacers.preferred.release(route.number);
    if (reply !== undefined) Object.assign(route, { isFallback: true, number: pacers.fallback.adopt(reply) });
  }

  /** True when the preferred way has no room for the post, or less than the fallback, or when it comes too late to grow. */
  function isCrowdedOut(route: ReplyRoute, now: number): boolean {
    const reply = route.isFallback ? undefined : pacers.preferred.find(route.number);
    if (reply === undefined || reply.next !== "post" || !isWaiting(reply)) return false;
    return (
      reply.ended || preferred.credit({ kind: "post", room: reply.room }, now) < 1 || hasMoreToSpare(reply.room, now)
    );
  }

  /** True when many replies grow in the preferred way, and the fallback would still give each of its own more calls. */
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
      // Alone means alone among all replies, whichever way they go.
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
      const begun = pacers.preferred.step(now);
      if (begun.type === "send") return toOuter(begun, false);
      const other = pacers.fallback.step(now);
      if (other.type === "send") return toOuter(other, true);
      if (begun.type === "idle") return other;
      return other.type === "idle" || begun.until <= other.until ? begun : other;
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

/** `update`: posts and `chat.update`. `append`: native streams, where a post starts one and a final stops it. */
export type SlackMethod = "update" | "append";

/** Slack ends a stream by itself after this time. */
const STREAM_LASTS_MS = 300_000;
/** The documented limits are 50, 100 and 20 calls per minute and method; one is left for the clocks' sake. */
const UPDATE_CALLS = 49;
const APPEND_CALLS = 98;
const STREAM_CALLS = 19;
const WINDOW_MS = 60_000;
/** Added to every window: requests do not arrive evenly spaced. */
const MARGIN_MS = 500;
/** `chat.postMessage` allows one post per second and channel. */
const POST_PAUSE_MS = 1_000;
/** A plan holds this long if nothing happens. */
const PLAN_HOLDS_MS = 100;
/** Least planned gap of one reply. */
const UPDATE_GAP_MS = 450;
const APPEND_GAP_MS = 350;
/** There is plenty only while the planned gap of a reply is shorter than this. */
const RICH_GAP_MS = 900;
/** A refused limit is spent at a bit less than its rate. */
const TIGHT_STRETCH = 1.15;
/** Credits that the plan for native streams leaves; nothing but appends uses them. */
const APPEND_RESERVE = 2;
/** The start of a reply matters to the plan for this time. */
const STARTS_MATTER_MS = 300_000;

interface Plan {
  at: number;
  key: string;
  gap: number;
  /** Calls that edits leave for finals. */
  reserve: number;
}

/** The limits of one Slack workspace: a bank of calls per method, each of which comes back a minute after it was spent. */
export function createSlackBudget(method: SlackMethod): Budget {
  const isAppend = method === "append";
  const calls = isAppend ? APPEND_CALLS : UPDATE_CALLS;
  const countedMs = WINDOW_MS + MARGIN_MS;
  const edits = createCallLog(calls, countedMs);
  const begins = createCallLog(STREAM_CALLS, countedMs);
  const finals = isAppend ? createCallLog(STREAM_CALLS, countedMs) : edits;
  const rooms = new Map<string, Limit>();
  /** Starts of the streams that no call has stopped yet: each has its stop set aside. */
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

  /** A stream that could be begun and not be stopped would leave its reader before a message that seems to grow. */
  function credit(call: Call, at: number): number {
    const free = limitOf(call).credit(at);
    return isAppend && call.kind === "post" ? Math.min(free, finals.credit(at) - openAt(at)) : free;
  }

  function creditAt(call: Call, needs: number, from: number): number {
    const at = limitOf(call).creditAt(needs, from);
    if (!isAppend || call.kind !== "post") return at;
    return Math.max(at, finals.creditAt(needs + openAt(from), from));
  }

  /** The calls to keep for the finals of the replies there are, whether they grow or have ended. */
  function toOwed({ now, unfinished, starts }: Demand): number {
    if (isAppend) return APPEND_RESERVE;
    const recent = starts.length - 1 - starts.findLastIndex((at) => at <= now - WINDOW_MS);
    return toReserve(unfinished + 0.1 * recent);
  }

  function toReserve(finals: number): number {
    // With less than half, twenty replies that end together would wait for each other's finals for most of a minute.
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
    // More could never be kept in a bucket that may hold no more than two.
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
 * A limit of one call per `pauseMs`, counted where the calls arrive. Nobody here knows when that is: between the
 * start of a call and its answer, and at least half the quickest round trip before the answer. From then on the pause
 * runs, so that the platform sees the calls at least that far apart.
 */
export function createRoomTurns(pauseMs: number): Limit {
  let inFlight = 0;
  let freeAt = -Infinity;
  let sentAt = -Infinity;
  /** The quickest round trip so far. */
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

/** Characters that a reply is expected to have in the end. It grows at least by the rest and half of its length. */
const USUAL_UNITS = 2_600;
const USUAL_REST_UNITS = 400;
/** The same of replies that grow side by side for longer than `LASTING_MS`, as those of 400 tokens seldom do. */
const LONG_UNITS = 6_000;
const LONG_REST_UNITS = 1_000;
const LASTING_MS = 7_000;
/** A reply older than this, alone or not, may well outlast the bank. */
const OUTLASTING_MS = 10_000;
/** The rate of a reply of which nothing is known. */
const USUAL_RATE_UNITS_PER_MS = 0.24;
/** Bounds within which a reply's rate is believed. */
const MIN_RATE_UNITS_PER_MS = 0.04;
const MAX_RATE_UNITS_PER_MS = 0.6;
/** Moments ahead for which demand and credit are compared. The tightest decides. */
const HORIZONS_MS = [2_000, 5_000, 10_000, 15_000, 20_000, 30_000, 40_000, 50_000, 60_500] as const;
/** A reply to come is counted on with this much text until a moment ahead. */
const COMING_UNITS = 600;
/** The share counted on of the replies that the rate of starts foretells. */
const BELIEF = 0.6;
/** Starts younger than this are a burst, not yet a rate; older ones than `RATE_SPAN_MS` say nothing about now. */
const BURST_SPAN_MS = 7_500;
const RATE_SPAN_MS = 75_000;
/** A rate is measured over at least this time: two starts close together are no rate. */
const MIN_RATE_SPAN_MS = 30_000;
/** Earlier replies that took this share of the limit's calls show that their rate matters. */
const LOADED = 0.1;
/** New replies per minute from which on a workspace counts as busy. */
const BUSY_PER_MINUTE = 15;
/** A loaded workspace plans no faster and no slower than these shares of the spacing at which its calls return. */
const LEAST_SPACING = 0.9;
const MOST_SPACING = 1.5;
/** The longest planned gap of one reply. */
const MAX_GAP_MS = 10_000;

export interface BankState {
  /** Calls that one window allows. */
  calls: number;
  /** The window as the platform says it, and with the margin for which own calls count. */
  windowMs: number;
  countedMs: number;
  /** Own calls that still count at a moment to come. */
  countAt(at: number): number;
  /** Calls kept for finals. */
  reserve: number;
  /** The least planned gap of one reply. */
  minGapMs: number;
}

/**
 * Plans the gap between calls for a limit whose credits come back one by one: what is asked for until some moment over
 * what there will be until then, for the tightest of several moments. Spending evenly per second of growing reply is
 * the optimum once the demand is known; what is guessed here is the demand. `docs/pacing.md` derives it.
 */
export function planGap(demand: Demand, bank: BankState): number {
  const { now, growing, active } = demand;
  const rates = growing.map(({ rate }) => clamp(rate, MIN_RATE_UNITS_PER_MS, MAX_RATE_UNITS_PER_MS));
  const mean = rates.length === 0 ? USUAL_RATE_UNITS_PER_MS : rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  const lasting = growing.filter(({ firstText }) => firstText < now - LASTING_MS).length > 1;
  const residuals = growing.map((reply) => toResidual(reply, active, lasting));
  const { load, startRate } = toLoad(demand, bank);
  // Many short replies are likelier than many long ones, until they last or the workspace is busy.
  const hope = active ** (lasting ? 0 : 0.5 * Math.max(0, 1 - (60_000 * startRate) / BUSY_PER_MINUTE));

  const asked = (aheadMs: number) => {
    const present = residuals.reduce((sum, rest) => sum + Math.min(rest, aheadMs), 0);
    const coming = BELIEF * startRate * aheadMs * Math.min(COMING_UNITS / mean, aheadMs / 2);
    return (growing.length === 0 ? Math.min(USUAL_UNITS / USUAL_RATE_UNITS_PER_MS, aheadMs) : present) + coming;
  };
  const there = (aheadMs: number) =>
    bank.calls - bank.countAt(now + aheadMs) - bank.reserve - BELIEF * startRate * aheadMs;
  const replyGap = Math.max(...HORIZONS_MS.map((aheadMs) => asked(aheadMs) / hope / Math.max(1, there(aheadMs))));

  // A long answer is written near the rate at which calls return: one quiet second does not empty the bank.
  const outlasts = growing.some(({ firstText }) => firstText < now - OUTLASTING_MS);
  const alone = outlasts ? (LEAST_SPACING * bank.windowMs) / bank.calls : 0;
  const gap = Math.max(clamp(replyGap, bank.minGapMs, MAX_GAP_MS) / active, alone);
  if (startRate === 0) return gap;
  const spacing = bank.windowMs / Math.max(bank.calls / 3, bank.calls - bank.windowMs * startRate);
  const least = (LEAST_SPACING * load * spacing) / hope;
  return Math.max(bank.minGapMs / active, alone, least, Math.min(gap, MOST_SPACING * spacing));
}

/** Counts the finals of replies still to begin for which no call will have come back: edits leave one for each. */
export function countComingFinals(demand: Demand, bank: BankState): number {
  const { now } = demand;
  const { startRate } = toLoad(demand, bank);
  const spent = bank.countAt(now);
  return Math.max(0, ...HORIZONS_MS.map((aheadMs) => startRate * aheadMs - (spent - bank.countAt(now + aheadMs))));
}

/** Estimates for how long a reply still grows, milliseconds. One alone counts twice: only the long ones meet the end of the credit. */
function toResidual({ total, rate }: Growth, active: number, lasting: boolean): number {
  const believed = clamp(rate, MIN_RATE_UNITS_PER_MS, MAX_RATE_UNITS_PER_MS);
  if (lasting) return Math.max(LONG_UNITS - total, LONG_REST_UNITS) / believed;
  return ((1 + 1 / active) * Math.max(USUAL_UNITS - total, USUAL_REST_UNITS + 0.5 * total)) / believed;
}

/**
 * Tells how loaded the workspace is by earlier replies, 0 to 1, and how many new replies per millisecond that makes
 * likely. The evidence is the share of the calls that earlier replies took, squared: a single short answer shows next
 * to nothing.
 */
function toLoad({ now, growing, starts }: Demand, bank: BankState): { load: number; startRate: number } {
  const old = growing.filter(({ firstText }) => firstText < now - BURST_SPAN_MS);
  // Replies that still grow have their calls in their own demand already, and their starts are no new replies.
  const own = old.reduce((sum, { edits }) => sum + edits, 0);
  const before = bank.countAt(now) - bank.countAt(now + bank.countedMs - BURST_SPAN_MS);
  const load = clamp((before - own) / (LOADED * bank.calls), 0, 1) ** 2;
  const others = starts.filter((at) => !growing.some(({ firstText }) => firstText === at));
  return { load, startRate: load * toStartRate(others, now) };
}

/** New replies per millisecond since the first start that still says something; 0 without one that is no burst. */
function toStartRate(starts: readonly number[], now: number): number {
  const old = starts.filter((at) => at < now - BURST_SPAN_MS && at > now - RATE_SPAN_MS);
  const [first] = old;
  return first === undefined ? 0 : old.length / (Math.max(now - first, MIN_RATE_SPAN_MS) - BURST_SPAN_MS);
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max);
}
