import type { MessageEvent } from "../port/events.ts";
import type { Services } from "../services/services.ts";
import { describeTime } from "../settings/local-time.ts";
import { advance, bringBack, type DueRun, findDue, type Schedule } from "./schedule.ts";
import type { Schedules } from "./schedules.ts";
import { isRecurring } from "./when.ts";

/** How often this process looks at the clock. */
const TICK_MS = 1_000;
/** How often this process asks the store whether a run was added. */
const READ_MS = 5_000;
/** Pause before this process looks again at a due schedule of a page that only another process can write to. */
const OTHERS_MS = 60_000;
/** A run that is later than this says so. */
const LATE_MS = 5 * 60_000;
/** A clock that goes back by more than this was set. */
const SET_BACK_MS = 30_000;

/** Turns due runs into accepted events. */
export interface Alarm {
  start(): void;
  close(): void;
  /** Fires what is due now, including what other processes have added. Never rejects. */
  look(): Promise<void>;
}

export interface AlarmDeps extends Services {
  schedules: Schedules;
  /** The time of day, Unix milliseconds: the same for all processes that share a store. */
  clock(): number;
}

/**
 * Every process that works looks for due runs. The queue makes each run happen once: the key of its event names the
 * schedule and the time, and the queue accepts a key once among all processes. The schedule gets its next run only
 * after that. If a process dies in between, the next process that looks continues.
 */
export function createAlarm({ schedules, queue, stores, adapterOf, log, clock }: AlarmDeps): Alarm {
  /** When to look at each schedule, by `clock`. */
  let looks = new Map<string, number>();
  /** The newest run that `looks` has; false if all schedules must be read again. */
  let newest: string | false | undefined = false;
  let readAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  /** How far `clock` was ahead of the monotonic clock at the last look. */
  let lead = Number.POSITIVE_INFINITY;

  /** False in a process that cannot write there. */
  async function isOurs({ reply, author }: Schedule): Promise<boolean> {
    try {
      const { isOwn, isThere } = adapterOf(reply.platform);
      if (isOwn !== true || stores.shared === undefined || isThere === undefined) return true;
      return await isThere(author.id, reply, AbortSignal.timeout(TICK_MS));
    } catch {
      return false;
    }
  }

  /** Resolves to when to look at the schedule again. */
  async function fire(id: string): Promise<number> {
    const stored = await schedules.read(id);
    const due = stored && findDue(stored, clock());
    if (stored === undefined || due === undefined) return stored?.next ?? Infinity;
    if (!(await isOurs(stored))) return clock() + OTHERS_MS;
    // A single run that was missed is an event too, because it says so.
    const isRun = !due.isMissed || !isRecurring(stored.pattern);
    if (isRun && stored.last?.dueAt !== due.dueAt) await queue.accept(toRun(stored, due, clock()));
    const advanced = await schedules.change(id, (current) =>
      current?.next === undefined || current.next > due.dueAt ? undefined : advance(current, due, clock()),
    );
    return (advanced ?? (await schedules.read(id)))?.next ?? Infinity;
  }

  async function bringAllBack(): Promise<void> {
    for (const one of await schedules.list()) {
      if (bringBack(one, clock()) === undefined) continue;
      await schedules.change(one.id, (current) => current && bringBack(current, clock()));
    }
    newest = false;
  }

  /** Reads all schedules, but only if another one runs earlier than this process knows. */
  async function refresh(): Promise<void> {
    const found = await schedules.readNewest();
    if (found !== newest) {
      looks = new Map((await schedules.list()).map(({ id, next = Infinity }) => [id, next]));
    }
    newest = found;
    readAt = performance.now();
  }

  async function tick(): Promise<void> {
    const leadNow = clock() - performance.now();
    const wasSetBack = leadNow < lead - SET_BACK_MS;
    if (wasSetBack) await bringAllBack();
    if (wasSetBack || performance.now() - readAt >= READ_MS) await refresh();
    lead = leadNow;
    for (const [id, at] of looks) {
      if (at > clock()) continue;
      try {
        looks.set(id, await fire(id));
      } catch (err) {
        log.warn({ err, scheduleId: id }, "a due run could not be accepted");
      }
    }
  }

  function look(): Promise<void> {
    looking ??= tick()
      .catch((err: unknown) => log.debug({ err }, "the schedules could not be read"))
      .finally(() => (looking = undefined));
    return looking;
  }

  return {
    start() {
      timer = setInterval(() => void look(), TICK_MS).unref();
    },
    close: () => clearInterval(timer),
    async look() {
      await looking;
      readAt = Number.NEGATIVE_INFINITY;
      await look();
    },
  };
}

/** The event of a run. The same run always makes the same event. */
function toRun(one: Schedule, { dueAt, isMissed }: DueRun, now: number): MessageEvent {
  const { id, reply, author, zone, task } = one;
  const key = `${reply.platform}:schedule:${id}:${dueAt}`;
  const messageId = key;
  // In a channel, each run starts a new conversation. In a thread or a direct conversation, it continues that one.
  const isConversation = reply.threadId !== undefined || reply.isDirect === true;
  const when = describeTime(dueAt, zone, now);
  return {
    kind: "message",
    key,
    messageId,
    conversationId: isConversation ? one.conversationId : `${one.conversationId}:${id}-${dueAt.toString(36)}`,
    author,
    reply: { ...reply, since: dueAt },
    at: dueAt,
    text: task,
    attachments: [],
    addressed: "bot",
    isAnsweredAlone: true,
    scheduled: {
      id,
      dueAt,
      when,
      ...(now - dueAt > LATE_MS && { notice: `_This was due ${when}. I couldn't do it then._` }),
      ...(isMissed && { isMissed: true }),
      ...(isRecurring(one.pattern) && { recurs: true }),
    },
  };
}
