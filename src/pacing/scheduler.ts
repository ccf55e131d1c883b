import { BoundedMap } from "../concurrency/bounded-map.ts";
import { untilAborted } from "../concurrency/deadlines.ts";
import type { CallKind, KnownCall, Pacer, PacerStep, ReplyBudget, Written } from "../port/pace.ts";
import type { Fallback } from "../port/sink.ts";

/** The part of a reply that the scheduler uses. */
export interface Paced {
  /** Makes the most urgent platform call with the newest text. Has its own timeout and never rejects. */
  write(): Promise<Written>;
  /** The platform limits posts per room. A reply without a room has this limit to itself. */
  readonly room?: string | undefined;
  /** The platform's second way to write, if it has one. The pacer or the reply's writer can switch to it. */
  readonly fallback?: Fallback | undefined;
  /** The kind of the first call; absent: a post. */
  readonly first?: CallKind;
}

export interface Pace {
  /** Reports `units` of new text (characters). */
  text(units: number): void;
  /**
   * Reports that no more text follows. Resolves when the platform has accepted a later call that shows everything.
   * Rejects with `signal.reason`, or if the reply is abandoned or the scheduler closes. Removes the reply. Must be
   * called at most once.
   */
  end(signal: AbortSignal): Promise<void>;
  /** Abandons the reply: no more calls start for it. */
  leave(): void;
}

export interface Scheduler {
  /** Adds a reply whose calls count against this budget. Replies with the same key share the first reply's pacer. */
  join(budget: ReplyBudget, paced: Paced): Pace;
  /** Returns the recent calls that count against the limit with this key, oldest first. */
  callsOf(key: string): readonly KnownCall[];
  /** Counts another process's `calls`, oldest first, against the limit with this key. */
  recall(key: string, calls: readonly KnownCall[]): void;
  budgets(): BudgetReport[];
  /** Stops starting calls. Every pending `end` rejects. */
  close(): void;
}

export interface BudgetReport {
  key: string;
  replies: number;
  /**
   * Milliseconds until the scheduler asks the pacer for the next call; undefined while it waits for text or for the end
   * of a call.
   */
  nextInMs: number | undefined;
}

export interface SchedulerOptions {
  /** The current time of a monotonic clock in milliseconds. */
  now(): number;
}

/**
 * New text delays its pacer's next check by at most this long, so that hundreds of deltas per second share one check.
 */
export const LOOK_MS = 100;
/** A budget without replies is kept this long, so that the next reply can use what the pacer has learned. */
const IDLE_KEPT_MS = 60_000;
const MAX_RECALLED = 1_000;
/** Maximum number of calls that are kept. No limit counts more calls at a time. */
const MAX_KEPT_CALLS = 400;
/** Maximum difference between the clocks of two processes. */
const SAME_CALL_MS = 50;
/** Node limits timers to 24.8 days. An early wake-up is harmless. */
const MAX_TIMER_MS = 3_600_000;

type SendStep = PacerStep & { type: "send" };

interface Group {
  key: string;
  pacer: Pacer;
  members: Map<number, Member>;
  timer: NodeJS.Timeout | undefined;
  askedAt: number;
  /** When the timer fires; Infinity if nothing is due before the next event. */
  wakeAt: number;
  pumping: boolean;
  /** The calls of this process, oldest first. */
  calls: KnownCall[];
}

interface Member {
  paced: Paced;
  /** Created by `end`, and settled when the reply ends. */
  ending: PromiseWithResolvers<void> | undefined;
  hasUnseen: boolean;
}

/** Runs one pacer and one timer per budget, and makes the calls that the pacers request. */
export function createScheduler({ now }: SchedulerOptions): Scheduler {
  const groups = createGroups();
  let closed = false;

  function pump(group: Group): void {
    // Return, because the running loop handles text that a write reports while it runs.
    if (closed || group.pumping) return;
    group.pumping = true;
    let step = ask(group, now());
    while (step.type === "send") {
      if (step.isFallback === true) group.members.get(step.reply)?.paced.fallback?.activate();
      void write(group, step);
      step = ask(group, now());
    }
    group.pumping = false;
    wake(group, step.type === "wait" ? step.until : Infinity);
    if (step.type === "idle" && group.members.size === 0) retire(group);
  }

  function wake(group: Group, at: number): void {
    clearTimeout(group.timer);
    group.wakeAt = at;
    group.timer = at === Infinity ? undefined : setTimeout(pump, toTimerMs(at - now()), group);
  }

  /** Drops a group that stays empty. The timer does not keep the process alive. */
  function retire(group: Group): void {
    const drop = () => {
      if (group.members.size > 0) return;
      if (group.pacer.keepUntil() > now()) retire(group);
      else if (groups.all.get(group.key) === group) groups.all.delete(group.key);
    };
    const rest = Math.max(IDLE_KEPT_MS, group.pacer.keepUntil() - now());
    group.timer = setTimeout(drop, toTimerMs(rest)).unref();
  }

  async function write(group: Group, { reply: number, kind, isFallback = false }: SendStep): Promise<void> {
    const member = group.members.get(number);
    if (member === undefined) return;
    const noteEnd = noteCall(group, { kind, room: member.paced.room ?? "", isFallback, sentAt: now() });
    const isFinal = member.ending !== undefined;
    member.hasUnseen = false;
    const written = await callWrite(member.paced);
    const { fallback } = member.paced;
    noteEnd(written, fallback, now());
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
    member.ending?.reject(new Error("The reply was abandoned."));
    group.pacer.leave(number);
    pump(group);
  }

  return {
    ...groups.history,
    join(budget, paced) {
      const group = groups.of(budget);
      const member: Member = { paced, ending: undefined, hasUnseen: false };
      const { room, first, fallback } = paced;
      const number = group.pacer.join({ room, first, isFallback: fallback?.isActive });
      group.members.set(number, member);
      return {
        text(units) {
          const at = now();
          group.pacer.text(number, units, at);
          const isFirst = !member.hasUnseen;
          member.hasUnseen = true;
          if (isFirst || at >= group.askedAt + LOOK_MS) pump(group);
          else if (group.wakeAt > at + LOOK_MS) wake(group, at + LOOK_MS);
        },
        async end(signal) {
          signal.throwIfAborted();
          const isOver = closed || !group.members.has(number) || member.ending !== undefined;
          if (isOver)
            throw new Error("This reply is no longer paced: it has ended, was abandoned, or its scheduler is closed.");
          member.ending = Promise.withResolvers<void>();
          group.pacer.end(number);
          pump(group);
          try {
            await untilAborted(member.ending.promise, signal);
          } finally {
            leave(group, number);
          }
        },
        leave: () => leave(group, number),
      };
    },

    budgets: () => groups.report(now()),
    close() {
      closed = true;
      for (const group of groups.all.values()) {
        wake(group, Infinity);
        for (const { ending } of group.members.values())
          ending?.reject(new Error("The scheduler of replies was closed."));
      }
      groups.all.clear();
    },
  };
}

function createGroups() {
  const all = new Map<string, Group>();
  /** Other processes' calls against limits that no reply of this process has used yet. */
  const recalled = new BoundedMap<string, readonly KnownCall[]>(MAX_RECALLED);

  return {
    all,
    of({ key, createPacer }: ReplyBudget): Group {
      const known = all.get(key);
      if (known !== undefined) return known;
      const group = createGroup(key, createPacer());
      all.set(key, group);
      recallCalls(group, recalled.get(key) ?? []);
      recalled.delete(key);
      return group;
    },
    report: (now: number): BudgetReport[] =>
      [...all.values()]
        .filter(({ members }) => members.size > 0)
        .map(({ key, members, wakeAt }) => {
          return { key, replies: members.size, nextInMs: wakeAt === Infinity ? undefined : Math.max(0, wakeAt - now) };
        }),
    history: {
      callsOf: (key: string) => all.get(key)?.calls ?? recalled.get(key) ?? [],
      recall(key: string, calls: readonly KnownCall[]): void {
        const group = all.get(key);
        if (group === undefined) recalled.set(key, [...(recalled.get(key) ?? []), ...calls]);
        else recallCalls(group, calls);
      },
    },
  };
}

function createGroup(key: string, pacer: Pacer): Group {
  return {
    key,
    pacer,
    members: new Map(),
    timer: undefined,
    askedAt: -Infinity,
    wakeAt: Infinity,
    pumping: false,
    calls: [],
  };
}

/** Counts other processes' calls and keeps them for the next process. Skips calls that this process made itself. */
function recallCalls({ calls, pacer }: Group, told: readonly KnownCall[]): void {
  const isKnown = ({ kind, room, sentAt }: KnownCall) =>
    calls.some((one) => one.kind === kind && one.room === room && Math.abs(one.sentAt - sentAt) < SAME_CALL_MS);
  const fresh = told.filter((call) => !isKnown(call));
  calls.push(...fresh);
  calls.sort((a, b) => a.sentAt - b.sentAt).splice(0, Math.max(0, calls.length - MAX_KEPT_CALLS));
  pacer.recall?.(fresh);
}

/** Records the start of a call. Returns a function that must be called at its end. */
function noteCall({ calls, pacer }: Group, call: KnownCall) {
  const note = (made: KnownCall): void => {
    if (pacer.recall === undefined) return;
    calls.push(made);
    if (calls.length > MAX_KEPT_CALLS) calls.shift();
  };
  note(call);
  return (written: Written, fallback: Fallback | undefined, now: number) => {
    const correction = toCorrection(call, written, fallback, now);
    if (correction !== undefined) note(correction);
  };
}

/** Returns the facts about a call that are known only after its response. */
function toCorrection(
  call: KnownCall,
  { answer, kind = call.kind }: Written,
  fallback: Fallback | undefined,
  now: number,
): KnownCall | undefined {
  // The refusal counts against the limit that permitted the call, even if the reply continues with the fallback.
  if (!answer.ok && answer.retryAfterMs !== undefined)
    return { ...call, kind, sentAt: now, refusedForMs: answer.retryAfterMs };
  const isFallback = fallback?.isActive ?? call.isFallback;
  return kind === call.kind && isFallback === call.isFallback ? undefined : { ...call, kind, isFallback };
}

function ask(group: Group, now: number): PacerStep {
  group.askedAt = now;
  return group.pacer.step(now);
}

async function callWrite(paced: Paced): Promise<Written> {
  try {
    return await paced.write();
  } catch {
    // `write` rejected, although it must not. The pacer waits before a retry, at most until the signal of `end` aborts.
    return { answer: { ok: false }, behind: true };
  }
}

function toTimerMs(waitMs: number): number {
  return Math.min(Math.max(1, Math.ceil(waitMs)), MAX_TIMER_MS);
}
