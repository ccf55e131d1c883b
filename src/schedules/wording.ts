import type { ScheduleFields } from "../port/events.ts";
import type { Button, Draft } from "../port/sink.ts";
import { describeTime, toClock } from "../settings/local-time.ts";
import { neutralize } from "../text/neutralize.ts";
import { truncate } from "../text/truncate.ts";
import type { Schedule } from "./schedule.ts";
import { findRuns, isRecurring } from "./when.ts";

const MAX_TASK_CHARS = 1_000;
const MAX_LINE_CHARS = 120;

/** A message about schedules. */
export interface Shown {
  text: string;
  buttons: Button[];
  /** The draft whose card it is. */
  draftId?: string;
}

export function say(text: string): Shown {
  return { text, buttons: [] };
}

export function toDraft({ text, buttons }: Shown): Draft {
  return { markdown: neutralize(text), buttons, streaming: false };
}

/** `Next: Mon 1 Dec 09:00 (Europe/Berlin), then Tue 2 Dec 09:00.` */
export function describeNext(one: Pick<Schedule, "pattern" | "zone">, now: number): string {
  const [first, second] = findRuns(one, now, 2);
  if (first === undefined) return "No runs are left.";
  const then = second === undefined ? ", once" : `, then ${toClock(second, one.zone, now)}`;
  return `Next: ${describeTime(first, one.zone, now)}${then}.`;
}

/** The card that asks for confirmation of a draft, or the message that confirms a schedule. */
export function toShown(one: Schedule, now: number): Shown {
  return one.state === "draft"
    ? { text: describeCard(one, now), buttons: toCardButtons(one.id), draftId: one.id }
    : { text: describeMade(one, now), buttons: toScheduleButtons(one) };
}

/** The words that a change starts from. A single run names its date, because "tomorrow" is another day by then. */
export function toFields({ time, task, pattern, zone }: Schedule, now: number): ScheduleFields {
  const [at] = isRecurring(pattern) ? [] : findRuns({ pattern, zone }, 0, 1);
  return { time: at === undefined ? time : toClock(at, zone, now), task };
}

function describeCard(draft: Schedule, now: number): string {
  const { time, reply, replaces } = draft;
  const place = reply.isDirect === true ? "here" : reply.threadId === undefined ? "in this channel" : "in this thread";
  const verb = replaces === undefined ? "Shall I do this" : "Shall I do this instead";
  return `**${verb} ${place}: ${toLine(time)}?**\n\n${quoteTask(draft)}\n\n${describeNext(draft, now)}`;
}

function describeMade(one: Schedule, now: number): string {
  return `**Scheduled (\`${one.id}\`): ${toLine(one.time)}**\n\n${quoteTask(one)}\n\n${describeNext(one, now)}`;
}

function quoteTask({ task }: Schedule): string {
  return truncate(task, MAX_TASK_CHARS).replace(/^/gm, "> ");
}

/** One line of a list, for the maker. */
export function describeLine(one: Schedule, now: number): string {
  return `- \`${one.id}\`: ${toLine(one.task)}. ${describeStanding(one, now)}`;
}

/** One line of a list, for an admin: what other people ask for stays theirs. */
export function describeOthers(one: Schedule, now: number): string {
  return `- \`${one.id}\` by ${toLine(one.author.name)}: ${describeStanding(one, now)}`;
}

/** Describes when a schedule runs, without people's words about what to do. */
export function describeStanding(one: Schedule, now: number): string {
  const { time, state, last, why } = one;
  const next = one.next === undefined ? "no more runs" : `next ${describeTime(one.next, one.zone, now)}`;
  const stands =
    state === "active" ? next : state === "paused" ? "paused" : `ended${why === undefined ? "" : `: ${why}`}`;
  const failed = last === undefined || isFine(last.outcome) ? "" : `; the last run: ${last.outcome}`;
  return `${capitalize(toLine(time))}: ${stands}${failed}.`;
}

const FINE = new Set(["running", "complete", "waiting", "stopped"]);

/** True for a run that did what it should. */
export function isFine(outcome: string): boolean {
  return FINE.has(outcome);
}

function toLine(text: string): string {
  return truncate(text.replace(/\s+/g, " ").replace(/[*_`~|<>]/g, ""), MAX_LINE_CHARS).replace(/[.?!]+$/, "");
}

function capitalize(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

function toCardButtons(id: string): Button[] {
  return [
    { action: "schedule", turnId: id, label: "Create" },
    { action: "reschedule", turnId: id, label: "Change" },
    { action: "unschedule", turnId: id, label: "Cancel" },
  ];
}

/** The buttons under a confirmed schedule, and under each of its posts. */
export function toScheduleButtons({ id, state }: Pick<Schedule, "id" | "state">): Button[] {
  return [
    state === "paused"
      ? { action: "resume", turnId: id, label: "Resume" }
      : { action: "pause", turnId: id, label: "Pause" },
    { action: "reschedule", turnId: id, label: "Edit" },
    { action: "unschedule", turnId: id, label: "Delete" },
  ];
}
