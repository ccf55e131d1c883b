import type { Budget, Call, Demand } from "./budget.ts";
import { createCallLog } from "./call-log.ts";
import type { Limit } from "./limit.ts";
import { createRoomTurns } from "./room-turns.ts";
import { countComingFinals, planGap } from "./slack-plan.ts";

/** `update`: posts and `chat.update`. `append`: native streams, where a post starts one and a final stops it. */
export type SlackMethod = "update" | "append";

export interface SlackBudgetOptions {
  method: SlackMethod;
  /** Processes that share the workspace's limits without talking to each other; each takes its part. */
  replicas?: number;
}

/** Seconds after which Slack ends a stream by itself. */
const STREAM_LASTS = 300;
/** The documented limits are 50, 100 and 20 calls per minute and method; one is left for the clocks' sake. */
const UPDATE_CALLS = 49;
const APPEND_CALLS = 98;
const STREAM_CALLS = 19;
const WINDOW = 60;
/** Added to every window: requests do not arrive evenly spaced, seconds. */
const MARGIN = 0.5;
/** `chat.postMessage` allows one post per second and channel, seconds. */
const POST_PAUSE = 1;
/** A plan holds this long if nothing happens, seconds. */
const PLAN_HOLDS = 0.1;
/** A refused limit is spent at a bit less than its rate. */
const TIGHT_STRETCH = 1.15;
/** Credits that the plan for native streams leaves; nothing but appends uses them. */
const APPEND_RESERVE = 2;
/** Seconds that the start of a reply matters to the plan. */
const STARTS_MATTER = 300;

interface Plan {
  at: number;
  key: string;
  gap: number;
  /** Calls that edits leave for finals. */
  reserve: number;
}

/** The limits of one Slack workspace: a bank of calls per method, each of which comes back a minute after it was spent. */
export function createSlackBudget({ method, replicas = 1 }: SlackBudgetOptions): Budget {
  const isAppend = method === "append";
  const share = (calls: number) => Math.max(1, Math.floor(calls / replicas));
  const calls = share(isAppend ? APPEND_CALLS : UPDATE_CALLS);
  const edits = createCallLog(calls, WINDOW + MARGIN);
  const begins = createCallLog(share(STREAM_CALLS), WINDOW + MARGIN);
  const finals = isAppend ? createCallLog(share(STREAM_CALLS), WINDOW + MARGIN) : edits;
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
    const turns = createRoomTurns(POST_PAUSE);
    rooms.set(room, turns);
    return turns;
  }

  function openAt(at: number): number {
    return open.filter((start) => start > at - STREAM_LASTS).length;
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

  /** Calls that the replies there are need for their finals, whether they grow or have ended. */
  function toOwed({ now, unfinished, starts }: Demand): number {
    if (isAppend) return APPEND_RESERVE;
    const recent = starts.filter((at) => at > now - 60).length;
    return toReserve(unfinished + 0.1 * recent);
  }

  function toReserve(finals: number): number {
    // With less than half, twenty replies that end together would wait for each other's finals for most of a minute.
    return Math.min(Math.max(Math.ceil(finals), 2), Math.floor(calls / 2));
  }

  function planFor(demand: Demand): Plan {
    const { now, active, live, starts } = demand;
    const owed = toOwed(demand);
    const key = `${version} ${live.length} ${active} ${starts.length} ${owed}`;
    if (plan !== undefined && plan.key === key && now - plan.at < PLAN_HOLDS) return plan;
    const minGap = isAppend ? 0.35 : 0.45;
    const bank = { calls, window: WINDOW, counted: WINDOW + MARGIN, countAt: edits.count, reserve: owed, minGap };
    plan = { at: now, key, gap: planGap(demand, bank), reserve: toReserve(owed + countComingFinals(demand, bank)) };
    return plan;
  }

  function reserve(demand: Demand): number {
    if (isAppend) return 0;
    // More could never be kept in a bucket that may hold no more than two.
    return edits.isTight(demand.now) ? 1 : planFor(demand).reserve;
  }

  function gap(demand: Demand): number {
    return edits.isTight(demand.now) ? (TIGHT_STRETCH * WINDOW) / calls : planFor(demand).gap;
  }

  function forgetRooms(now: number): void {
    for (const [room, turns] of rooms) if (turns.keepUntil() < now) rooms.delete(room);
  }

  return {
    firstGap: 0.28,
    minGap: 0.3,
    keep: 2,
    reserve,
    gap,
    isRich: (at, gapPerReply) => gapPerReply < 0.9 && edits.count(at) < 0.4 * calls && !edits.isTight(at),
    credit,
    creditAt,
    sent(call, now) {
      forgetRooms(now);
      if (isAppend && call.kind === "post") open = [...open.filter((start) => start > now - STREAM_LASTS), now];
      limitOf(call).sent(now);
      lastCall = now;
      version += 1;
    },
    done(planned, made, sentAt, answer, now) {
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
    keepUntil: () => Math.max(lastCall + STARTS_MATTER, edits.keepUntil(), begins.keepUntil(), finals.keepUntil()),
  };
}
