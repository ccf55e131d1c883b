import { BoundedMap } from "../concurrency/bounded-map.ts";
import { untilAborted } from "../concurrency/deadlines.ts";
import type { CallKind, KnownCall, Pacer, PacerStep, ReplyBudget, Written } from "../port/pace.ts";
import type { Fallback } from "../port/sink.ts";

/** A reply as the scheduler sees it. */
export interface Paced {
  /** Makes the most urgent platform call with the newest text. Bounded by its own deadline; never rejects. */
  write(): Promise<Written>;
  /** Replies of one room share the platform's limit on posts; without it a reply is alone. */
  readonly room?: string | undefined;
  /** The second way of writing, where the platform has two. The pacer activates it, or the reply's writer. */
  readonly fallback?: Fallback | undefined;
  /** The kind of its first call; a post when absent. */
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
  /** Counts calls that other processes have made against the limit of this key, oldest first. */
  recall(key: string, calls: readonly KnownCall[]): void;
  /** The limits under which replies are written at this moment. */
  budgets(): BudgetReport[];
  /** Begins no more calls; every pending `end` rejects. */
  close(): void;
}

export interface BudgetReport {
  key: string;
  replies: number;
  /** Milliseconds until its pacer is asked for the next call; undefined while it waits for text or the end of a call. */
  nextInMs: number | undefined;
}

export interface SchedulerOptions {
  /** Milliseconds on a monotonic clock. */
  now(): number;
  /** Told of each call that begins under a limit that others share, and of what only its answer revealed about it. */
  onCall?(key: string, call: KnownCall): void;
}

/** Text of a waiting reply moves its pacer's next look by at most this: hundreds of pieces a second share one look. */
export const LOOK_MS = 100;
/** A budget without replies is kept at least this long, so that a conversation in full swing keeps what was learnt. */
const IDLE_KEPT_MS = 60_000;
const MAX_RECALLED = 1_000;
/** Timers of Node hold no longer waits than 24.8 days; a wake-up too many does no harm. */
const MAX_TIMER_MS = 3_600_000;

type SendStep = PacerStep & { type: "send" };

/** The replies that share one budget. */
interface Group {
  key: string;
  pacer: Pacer;
  members: Map<number, Member>;
  timer: NodeJS.Timeout | undefined;
  askedAt: number;
  /** The time at which the timer asks the pacer; Infinity while nothing is due before the next event. */
  wakeAt: number;
  pumping: boolean;
}

interface Member {
  paced: Paced;
  /** Set by `end`; settles it. */
  ending: PromiseWithResolvers<void> | undefined;
  hasUnseen: boolean;
}

/** Runs one pacer and one timer per budget, and makes the calls that the pacers ask for. */
export function createScheduler({ now, onCall }: SchedulerOptions): Scheduler {
  const groups = createGroups();
  let closed = false;

  function pump(group: Group): void {
    // A write may report text before it returns: the loop that runs will see it.
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

  /** Drops a group that stays empty; an idle one holds no process open. */
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
    const noteEnd = noteCall(group, { kind, room: member.paced.room ?? "", isFallback, sentAt: now() }, onCall);
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
    member.ending?.reject(new Error("The reply was given up."));
    group.pacer.leave(number);
    pump(group);
  }

  return {
    recall: groups.recall,
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
            throw new Error("This reply is no longer paced: it has ended, was given up, or its scheduler is closed.");
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
          ending?.reject(new Error("The pace of replies was shut down."));
      }
      groups.all.clear();
    },
  };
}

function createGroups() {
  const all = new Map<string, Group>();
  /** Calls of other processes under limits that no reply of this process has used yet. */
  const recalled = new BoundedMap<string, readonly KnownCall[]>(MAX_RECALLED);

  return {
    all,
    of({ key, createPacer }: ReplyBudget): Group {
      const known = all.get(key);
      if (known !== undefined) return known;
      const group = createGroup(key, createPacer());
      all.set(key, group);
      group.pacer.recall?.(recalled.get(key) ?? []);
      recalled.delete(key);
      return group;
    },
    report: (now: number): BudgetReport[] =>
      [...all.values()]
        .filter(({ members }) => members.size > 0)
        .map(({ key, members, wakeAt }) => {
          return { key, replies: members.size, nextInMs: wakeAt === Infinity ? undefined : Math.max(0, wakeAt - now) };
        }),
    recall(key: string, calls: readonly KnownCall[]): void {
      const group = all.get(key);
      if (group === undefined) recalled.set(key, [...(recalled.get(key) ?? []), ...calls]);
      else group.pacer.recall?.(calls);
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
  };
}

/** Notes a call that begins, where others share its limit. Returns what is to be called with its end. */
function noteCall({ key, pacer }: Group, call: KnownCall, onCall: SchedulerOptions["onCall"]) {
  const tell = (made: KnownCall) => (pacer.recall === undefined ? undefined : onCall?.(key, made));
  tell(call);
  return (written: Written, fallback: Fallback | undefined, now: number) => {
    const correction = toCorrection(call, written, fallback, now);
    if (correction !== undefined) tell(correction);
  };
}

/** The facts about a call that only its answer revealed. */
function toCorrection(
  call: KnownCall,
  { answer, kind = call.kind }: Written,
  fallback: Fallback | undefined,
  now: number,
): KnownCall | undefined {
  const isFallback = fallback?.isActive ?? call.isFallback;
  const made = { ...call, kind, isFallback };
  if (!answer.ok && answer.retryAfterMs !== undefined)
    return { ...made, sentAt: now, refusedForMs: answer.retryAfterMs };
  return kind === call.kind && isFallback === call.isFallback ? undefined : made;
}

function ask(group: Group, now: number): PacerStep {
  group.askedAt = now;
  return group.pacer.step(now);
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
