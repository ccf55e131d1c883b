import type { CallKind, Pacer, ReplyBudget, Written } from "../port/pace.ts";
import type { Fallback } from "../port/sink.ts";

/** A reply as the scheduler sees it. */
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

/** The replies that share one budget. */
interface Group {
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
  const groups = new Map<string, Group>();
  let closed = false;

  function groupOf({ key, createPacer }: ReplyBudget): Group {
    const known = groups.get(key);
    if (known !== undefined) return known;
    const group: Group = { key, pacer: createPacer(), members: new Map(), timer: undefined, pumping: false };
    groups.set(key, group);
    return group;
  }

  function pump(group: Group): void {
    // A write may report text before it returns: the loop that runs will see it.
    if (closed || group.pumping) return;
    group.pumping = true;
    clearTimeout(group.timer);
    group.timer = undefined;
    let step = group.pacer.step(now());
    while (step.type === "send") {
      if (step.isFallback === true) group.members.get(step.reply)?.paced.fallback?.activate();
      void write(group, step.reply);
      step = group.pacer.step(now());
    }
    group.pumping = false;
    if (step.type === "wait") group.timer = setTimeout(pump, toTimerMs(step.until - now()), group);
    else if (group.members.size === 0) retire(group);
  }

  /** Drops a group that stays empty; an idle one holds no process open. */
  function retire(group: Group): void {
    const drop = () => {
      if (group.members.size > 0) return;
      if (group.pacer.keepUntil() > now()) retire(group);
      else if (groups.get(group.key) === group) groups.delete(group.key);
    };
    const rest = Math.max(IDLE_KEPT_MS, group.pacer.keepUntil() - now());
    group.timer = setTimeout(drop, toTimerMs(rest)).unref();
  }

  async function write(group: Group, number: number): Promise<void> {
    const member = group.members.get(number);
    if (member === undefined) return;
    const isFinal = member.ending !== undefined;
    const written = await callWrite(member.paced);
    const { fallback } = member.paced;
    group.pacer.done(number, fallback === undefined ? written : { ...written, isFallback: fallback.isActive }, now());
    if (isFinal && written.answer.ok && !written.behind && group.members.has(number)) {
      member.ending?.resolve();
      leave(group, number);
    }
    pump(group);
  }

  function leave(group: Group, number: number): void {
    const member = group.members.get(number);
    if (member === undefined) return;
    group.members.delete(number);
    member.ending?.reject(new Error("The reply was given up."));
    group.pacer.leave(number);
    pump(group);
  }

  return {
    join(budget, paced) {
      const group = groupOf(budget);
      const member: Member = { paced, ending: undefined };
      const { room, first, fallback } = paced;
      const number = group.pacer.join({ room, first, isFallback: fallback?.isActive });
      group.members.set(number, member);
      return {
        text(units) {
          group.pacer.text(number, units, now());
          pump(group);
        },
        async end(signal) {
          signal.throwIfAborted();
          const isOver = closed || !group.members.has(number) || member.ending !== undefined;
          if (isOver)
            throw new Error("This reply is no longer paced: it has ended, was given up, or its scheduler is closed.");
          const ending = Promise.withResolvers<void>();
          member.ending = ending;
          const abort = () => ending.reject(signal.reason);
          signal.addEventListener("abort", abort, { once: true });
          group.pacer.end(number);
          pump(group);
          try {
            await ending.promise;
          } finally {
            signal.removeEventListener("abort", abort);
            leave(group, number);
          }
        },
        leave: () => leave(group, number),
      };
    },

    close() {
      closed = true;
      for (const { timer, members } of groups.values()) {
        clearTimeout(timer);
        for (const { ending } of members.values()) ending?.reject(new Error("The pace of replies was shut down."));
      }
      groups.clear();
    },
  };
}

async function callWrite(paced: Paced): Promise<Written> {
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
