import { z } from "zod";
import type { Author, ReplyAddress } from "../port/events.ts";
import { findRuns, isRecurring } from "./when.ts";

/** The port owns these two types. Their additional fields are stored unchanged. */
const author: z.ZodType<Author> = z.looseObject({ id: z.string(), name: z.string() });
const reply: z.ZodType<ReplyAddress> = z.looseObject({ platform: z.string(), channelId: z.string() });

export const schedule = z.object({
  v: z.literal(1),
  /** Short, because people type it. Its buttons carry it. */
  id: z.string(),
  /** A `draft` is a card that its author has not confirmed, and never runs. An `ended` schedule never runs again. */
  state: z.enum(["draft", "active", "paused", "ended"]),
  /** The time in the maker's words. */
  time: z.string(),
  /** The question for the model, asked at each run. */
  task: z.string(),
  /** As in `When`. */
  pattern: z.string(),
  zone: z.string(),
  conversationId: z.string(),
  /** A lasting address: without anything that expires. */
  reply,
  /** The maker, as the platform described them when they asked. */
  author,
  /** When it was made, Unix milliseconds. */
  madeAt: z.number(),
  /** The next run, Unix milliseconds; absent if no run is left, or in a schedule that is not active. */
  next: z.number().exactOptional(),
  /** The newest run: the time for which it was due, and how it ended. */
  last: z.object({ dueAt: z.number(), outcome: z.string() }).exactOptional(),
  /** Failed runs in a row. */
  failures: z.number(),
  /** The reason why the schedule ended or paused without a person. */
  why: z.string().exactOptional(),
  /** A draft: the schedule that it changes. */
  replaces: z.string().exactOptional(),
  /** The message that shows the draft. */
  card: z.object({ id: z.string(), isPrivate: z.boolean() }).exactOptional(),
});

export type Schedule = z.infer<typeof schedule>;

/** A recurring run that is later than this is skipped; a single one says that it was missed. */
export const MAX_LATE_MS = 12 * 3_600_000;

/** The run that is due: the newest of those that were missed. */
export interface DueRun {
  dueAt: number;
  /** The run is too late to be made up for. */
  isMissed: boolean;
}

/** Undefined while no run is due. `now` is in Unix milliseconds. */
export function findDue({ state, next, ...when }: Schedule, now: number): DueRun | undefined {
  if (state !== "active" || next === undefined || next > now) return undefined;
  if (!isRecurring(when.pattern)) return { dueAt: next, isMissed: now - next > MAX_LATE_MS };
  const from = Math.max(next - 1, now - MAX_LATE_MS);
  let dueAt = findRuns(when, from, 1)[0];
  if (dueAt === undefined || dueAt > now) return { dueAt: next, isMissed: true };
  for (let later = dueAt; later <= now; later = findRuns(when, later, 1)[0] ?? Infinity) dueAt = later;
  return { dueAt, isMissed: false };
}

/** The schedule after a run was accepted or skipped. The next run is later than this one and than `now`. Pure. */
export function advance(before: Schedule, { dueAt, isMissed }: DueRun, now: number): Schedule {
  const { next: _, ...rest } = before;
  const [next] = isRecurring(before.pattern) ? findRuns(before, Math.max(dueAt, now), 1) : [];
  // A short run can have ended already.
  const hasEnded = before.last?.dueAt === dueAt;
  const last = hasEnded ? before.last : { dueAt, outcome: isMissed ? "missed" : "running" };
  return { ...rest, last, ...(next !== undefined && { next }) };
}

/**
 * While the clock was ahead, the schedule skipped runs. Returns it with the first skipped run as its next one, for a
 * clock that was set back to `now`. Undefined if it skipped none. Pure.
 */
export function bringBack(before: Schedule, now: number): Schedule | undefined {
  const { state, pattern, next, last } = before;
  if (state !== "active" || next === undefined || !isRecurring(pattern)) return undefined;
  const first = findRuns(before, now, 2).find((run) => run !== last?.dueAt);
  return first === undefined || first >= next ? undefined : { ...before, next: first };
}

/** The parts of an address that never expire. */
export function toLasting({
  platform,
  channelId,
  threadId,
  workspaceId,
  categoryId,
  isDirect,
}: ReplyAddress): ReplyAddress {
  return {
    platform,
    channelId,
    ...(threadId !== undefined && { threadId }),
    ...(workspaceId !== undefined && { workspaceId }),
    ...(categoryId !== undefined && { categoryId }),
    ...(isDirect && { isDirect }),
  };
}
