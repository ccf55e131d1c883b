import type { CallKind, Pacer, ReplyBudget, Written } from "../port/pace.ts";
import type { Fallback } from "../port/sink.ts";

/** What a reply looks like to the scheduler. */
export interface Paced {
  /**
   * Performs the one most urgent platform call with the newest text. Resolves to its answer and whether anything of
   * the current text is still not shown. Bounded by its own deadline; never rejects.
   */
  write(): Promise<Written>;
  /** Replies of one room share the platform's limit on posts; without it a reply is alone. */
  readonly room?: string | undefined;
  /** The second way of writing, where the platform has two: taken when the budget says so, or the reply. */
  readonly fallback?: Fallback | undefined;
  /** Its first call; a post when absent. */
  readonly first?: CallKind;
}

/** A reply's side of the scheduler. */
export interface Pace {
  /** `units` of new text (characters) are there to be shown. */
  text(units: number): void;
  /**
   * Says that no more text comes. Resolves when a call that began afterwards was accepted and showed everything, and
   * leaves then; rejects with `signal.reason`, and when the reply is given up or the scheduler closes. At most once.
   */
  end(signal: AbortSignal): Promise<void>;
  /** Gives the reply up: no call begins for it any more. */
  leave(): void;
}

export interface Scheduler {
  /** Takes up a reply whose calls count against this budget: all replies of one key share the pacer of the first. */
  join(budget: ReplyBudget, paced: Paced): Pace;
  /** Begins no more calls; every pending `end` rejects. */
  close(): void;
}

export interface SchedulerOptions {
  /** Milliseconds on a monotonic clock. */
  now(): number;
}

/** A budget without replies is kept so long at least, so that a conversation in full swing keeps what was learnt. */
const IDLE_KEPT_MS = 60_000;
/** Timers of Node hold no longer waits than 24.8 days; a wake-up too many does no harm. */
const MAX_TIMER_MS = 3_600_000;

interface Lane {
  key: string;
  pacer: Pacer;
  members: Map<number, Member>;
  timer: NodeJS.Timeout | undefined;
  pumping: boolean;
}

interface Member {
  paced: Paced;
  /** Set by `end`; settles it. */
  ending: PromiseWithResolvers<void> | undefined;
}

/** Runs one pacer and one timer per budget, and makes the calls that the pacers ask for. */
export function createScheduler({ now }: SchedulerOptions): Scheduler {
  const lanes = new Map<string, Lane>();
  let closed = false;

  function laneOf({ key, createPacer }: ReplyBudget): Lane {
    const known = lanes.get(key);
    if (known !== undefined) return known;
    const lane: Lane = { key, pacer: createPacer(), members: new Map(), timer: undefined, pumping: false };
    lanes.set(key, lane);
    return lane;
  }

  function pump(lane: Lane): void {
    // A write may report text before it returns: the loop that runs will see it.
    if (closed || lane.pumping) return;
    lane.pumping = true;
    clearTimeout(lane.timer);
    lane.timer = undefined;
    let step = lane.pacer.step(now());
    while (step.type === "send") {
      if (step.isFallback === true) lane.members.get(step.reply)?.paced.fallback?.activate();
      void write(lane, step.reply);
      step = lane.pacer.step(now());
    }
    lane.pumping = false;
    if (step.type === "wait") lane.timer = setTimeout(pump, toTimerMs(step.until - now()), lane);
    else if (lane.members.size === 0) retire(lane);
  }

  /** Drops a lane that stays empty; an idle lane holds no process open. */
  function retire(lane: Lane): void {
    const drop = () => {
      if (lane.members.size > 0) return;
      if (lane.pacer.keepUntil() > now()) retire(lane);
      else if (lanes.get(lane.key) === lane) lanes.delete(lane.key);
    };
    const rest = Math.max(IDLE_KEPT_MS, lane.pacer.keepUntil() - now());
    lane.timer = setTimeout(drop, toTimerMs(rest)).unref();
  }

  async function write(lane: Lane, number: number): Promise<void> {
    const member = lane.members.get(number);
    if (member === undefined) return;
    const isFinal = member.ending !== undefined;
    const written = await attempt(member.paced);
    const { fallback } = member.paced;
    lane.pacer.done(number, fallback === undefined ? written : { ...written, isFallback: fallback.isActive }, now());
    if (isFinal && written.answer.ok && !written.behind && lane.members.has(number)) {
      member.ending?.resolve();
      leave(lane, number);
    }
    pump(lane);
  }

  function leave(lane: Lane, number: number): void {
    const member = lane.members.get(number);
    if (member === undefined) return;
    lane.members.delete(number);
    member.ending?.reject(new Error("The reply was given up."));
    lane.pacer.leave(number, now());
    pump(lane);
  }

  return {
    join(budget, paced) {
      const lane = laneOf(budget);
      const member: Member = { paced, ending: undefined };
      const { room, first, fallback } = paced;
      const number = lane.pacer.join(now(), { room, first, isFallback: fallback?.isActive });
      lane.members.set(number, member);
      return {
        text(units) {
          lane.pacer.text(number, units, now());
          pump(lane);
        },
        async end(signal) {
          signal.throwIfAborted();
          const isOver = closed || !lane.members.has(number) || member.ending !== undefined;
          if (isOver)
            throw new Error("This reply is no longer paced: it has ended, was given up, or its scheduler is closed.");
          const ending = Promise.withResolvers<void>();
          member.ending = ending;
          const abort = () => ending.reject(signal.reason);
          signal.addEventListener("abort", abort, { once: true });
          lane.pacer.end(number, now());
          pump(lane);
          try {
            await ending.promise;
          } finally {
            signal.removeEventListener("abort", abort);
            leave(lane, number);
          }
        },
        leave: () => leave(lane, number),
      };
    },

    close() {
      closed = true;
      for (const { timer, members } of lanes.values()) {
        clearTimeout(timer);
        for (const { ending } of members.values()) ending?.reject(new Error("The pace of replies was shut down."));
      }
      lanes.clear();
    },
  };
}

async function attempt(paced: Paced): Promise<Written> {
  try {
    return await paced.write();
  } catch {
    // Against its contract; the pacer backs off and `end` stays bounded by its signal.
    return { answer: { ok: false }, behind: true };
  }
}

function toTimerMs(waitMs: number): number {
  return Math.min(Math.max(1, Math.ceil(waitMs)), MAX_TIMER_MS);
}
