import { runWithin } from "../concurrency/deadlines.ts";
import type { Author, InboundEvent, MessageEvent } from "../port/events.ts";
import { isRefusal } from "../reply/platform-call.ts";
import type { Services } from "../services/services.ts";
import { quoteName } from "../text/quote-name.ts";
import { findDenial } from "./rights.ts";
import type { Schedule } from "./schedule.ts";
import type { Schedules } from "./schedules.ts";
import { isRecurring } from "./when.ts";
import { isFine, toDraft, toScheduleButtons } from "./wording.ts";

/** After this many failed runs in a row, a schedule pauses itself. */
const MAX_FAILURES = 3;
const LOOK_MS = 10_000;

export type ScheduledEvent = MessageEvent & Required<Pick<MessageEvent, "scheduled">>;

export interface RunDeps extends Services {
  schedules: Schedules;
  /** True if an earlier process has started to answer the event. */
  hasStarted(event: MessageEvent): Promise<boolean>;
  /** Answers the event like any message. Resolves to the finished events. */
  answer(event: ScheduledEvent): Promise<readonly InboundEvent[]>;
  /** How the answer to the event ended; undefined if that is unknown. */
  outcomeOf(event: MessageEvent): Promise<string | undefined>;
}

export function isScheduled(event: InboundEvent | undefined): event is ScheduledEvent {
  return event?.kind === "message" && event.scheduled !== undefined;
}

/**
 * Carries out one run with the rights and the quota that its maker has now. A run that has started continues even if
 * the schedule was changed or deleted meanwhile. Can run again after a crash.
 */
export async function carryOut(
  event: ScheduledEvent,
  deps: RunDeps,
  signal: AbortSignal,
): Promise<readonly InboundEvent[]> {
  const { schedules } = deps;
  const { id, dueAt, isMissed } = event.scheduled;
  const one = await schedules.read(id);
  if (!(await deps.hasStarted(event))) {
    // A person deleted or paused the schedule after the run was accepted.
    if (one === undefined || one.state !== "active") return [event];
    if (isMissed === true) {
      const text = `I couldn't do this in time: ${quoteName(one.task)} was due ${event.scheduled.when}.`;
      await tell(deps, one, event, text, signal);
      await schedules.remove(id);
      return [event];
    }
    const author = await findMaker(deps, one, signal);
    const refusal =
      author === undefined
        ? `${quoteName(one.author.name)} and I are no longer both here`
        : await findRefusal(deps, one, author);
    if (author === undefined || refusal !== undefined) {
      await end(deps, one, event, refusal ?? "", signal);
      return [event];
    }
    const full = await deps.quota.findRefusal({ ...event, author }, "chat");
    if (full !== undefined) {
      await noteOutcome(deps, event, "a limit is reached", full, signal);
      return [event];
    }
    const done = await deps.answer({ ...event, author });
    await noteOutcome(deps, event, (await deps.outcomeOf(event)) ?? "failed", undefined, signal);
    return done;
  }
  const done = await deps.answer(event);
  // The alarm can fail to note that the run began. A later run's outcome stays.
  if (one !== undefined && (one.last?.dueAt ?? dueAt) <= dueAt)
    await noteOutcome(deps, event, (await deps.outcomeOf(event)) ?? "failed", undefined, signal);
  return done;
}

/** Says that a run failed too often, and stores that. */
export async function giveUpRun(
  event: ScheduledEvent,
  deps: RunDeps,
  signal: AbortSignal,
): Promise<readonly InboundEvent[]> {
  const one = await deps.schedules.read(event.scheduled.id);
  if (one?.state !== "active" && !(await deps.hasStarted(event))) return [event];
  const done = await deps.answer(event);
  await noteOutcome(deps, event, "failed", undefined, signal);
  return done;
}

/** The maker with their present roles; undefined if they left the channel or workspace. Rejects if that is unknown. */
async function findMaker(
  { adapterOf }: RunDeps,
  { author, reply }: Schedule,
  signal: AbortSignal,
): Promise<Author | undefined> {
  const adapter = adapterOf(reply.platform);
  return runWithin(
    LOOK_MS,
    async (bound) => {
      if ((await adapter.isThere?.(author.id, reply, bound)) === false) return undefined;
      return adapter.findAuthor === undefined ? author : adapter.findAuthor(author.id, reply, bound);
    },
    signal,
  );
}

async function findRefusal(deps: RunDeps, { reply }: Schedule, author: Author): Promise<string | undefined> {
  const denial = await findDenial(deps, { author, reply });
  return denial && `${quoteName(author.name)} is no longer allowed to do this (${denial.reason})`;
}

/** Ends a schedule, so that it never runs again, and says so once. */
async function end(deps: RunDeps, one: Schedule, event: MessageEvent, why: string, signal: AbortSignal): Promise<void> {
  await tell(deps, one, event, `I stopped this schedule, because ${why}: ${one.time}, ${quoteName(one.task)}.`, signal);
  await deps.schedules.change(one.id, (stored) => {
    if (stored?.state !== "active") return undefined;
    const { next: _, ...rest } = stored;
    return { ...rest, state: "ended", why };
  });
}

/** Stores how a run ended. Tells people once if their quota allowed no run, and pauses after several failures. */
async function noteOutcome(
  deps: RunDeps,
  event: ScheduledEvent,
  outcome: string,
  refusal: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { id, dueAt } = event.scheduled;
  let isPaused = false;
  const after = await deps.schedules.change(id, (stored) => {
    if (stored === undefined) return undefined;
    const failures = isFine(outcome) ? 0 : stored.failures + 1;
    isPaused = failures >= MAX_FAILURES && stored.state === "active" && stored.next !== undefined;
    const { next, ...rest } = stored;
    const noted = { ...rest, failures, last: { dueAt, outcome } };
    if (isPaused) return { ...noted, state: "paused", why: outcome };
    return next === undefined ? noted : { ...noted, next };
  });
  if (after === undefined) return;
  if (isPaused) {
    const text = `I paused this schedule after ${MAX_FAILURES} failed runs: ${after.time}, ${quoteName(after.task)}.`;
    await tell(deps, after, event, text, signal);
  } else if (refusal !== undefined && after.failures === 1) {
    await tell(deps, after, event, `${quoteName(after.task)} was due. ${refusal}`, signal);
  }
  // A single run is over, even if the alarm has not stored yet that the run started.
  const isLast = after.next === undefined || (!isRecurring(after.pattern) && after.next <= dueAt);
  if (isLast && after.state === "active") await deps.schedules.remove(id);
}

/** Posts a sentence where the schedule posts, once per run. */
async function tell(
  { sinkOf, log }: RunDeps,
  one: Schedule,
  { key }: MessageEvent,
  text: string,
  signal: AbortSignal,
): Promise<void> {
  const buttons = one.state === "paused" ? toScheduleButtons(one) : [];
  try {
    await sinkOf(one.reply).post(toDraft({ text, buttons }), `${key}:notice`, signal);
  } catch (err) {
    if (!isRefusal(err)) throw err;
    log.warn({ err, scheduleId: one.id }, "a notice about a schedule could not be posted");
  }
}
