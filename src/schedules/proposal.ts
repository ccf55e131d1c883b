import type { Actor } from "../port/catalogue.ts";
import type { EventBase } from "../port/events.ts";
import { isSamePerson } from "../port/identity.ts";
import { toTurnId } from "../port/ids.ts";
import type { Services } from "../services/services.ts";
import { isZone } from "../settings/timezone.ts";
import { findDenial, GONE, NOT_THE_MAKER } from "./rights.ts";
import { type Schedule, toLasting } from "./schedule.ts";
import type { Schedules } from "./schedules.ts";
import { findRuns, isTooOften, MAX_AHEAD_MS, REPEATS, readWhen } from "./when.ts";

const MAX_TASK_CHARS = 4_000;
const ID_CHARS = 6;

export const HOW =
  "Write when and what: `/schedule weekdays at 9:00 what is still open in here?`, or `/schedule tomorrow 14:00 remind me to call Ana`.";
const NO_TIME = `I couldn't find a time in that. ${HOW}`;
const NO_PATTERN =
  "I can't repeat it like that. I know `every monday and friday at 10:00`, `every 2 hours`, `first of the month`, or five fields of cron.";
const NO_TASK = `I understood when, but not what to do. ${HOW}`;
const NO_ZONE =
  "In which time zone? Add its name after the time, such as `weekdays at 9:00 Europe/Berlin`. `/timezone` sets one for the whole channel.";
export const PAST = "That time has passed. Choose one in the future.";
const TOO_FAR = "That's more than a year away. I can schedule at most a year ahead.";
const TOO_OFTEN = "That's too often: leave at least 15 minutes between runs.";

/** A request for a schedule, from a command or a tool. */
export interface Wish extends Pick<EventBase, "key" | "conversationId" | "author" | "reply"> {
  /** When and what, in the person's words. */
  words: string;
  /** The schedule that it changes. */
  replaces?: string;
}

/** Understands a request. Resolves to a draft that is not stored yet, or to the reason why it cannot. */
export type Understand = (wish: Wish) => Promise<Schedule | string>;

export function createUnderstand(deps: Services & { schedules: Schedules }): Understand {
  const { schedules, settings, now } = deps;

  /** The zone of a person in a place; undefined if no one has said it yet. */
  async function findZone({ author, reply }: Actor): Promise<string | undefined> {
    if (author.timeZone !== undefined && isZone(author.timeZone)) return author.timeZone;
    const { timezone } = await settings.read(reply);
    if (timezone !== undefined) return timezone;
    const own = await schedules.list({ person: { platform: reply.platform, id: author.id } });
    return own.toSorted((one, other) => other.madeAt - one.madeAt)[0]?.zone;
  }

  /** Reads when and what, by the clocks of the zone that the words name, or else of the known one. */
  function readWords(words: string, known: string | undefined) {
    const first = readWhen(words, known ?? "UTC", now());
    // "in 20 minutes" is the same moment in every zone.
    const zone = first?.zone ?? known ?? (first?.pattern.endsWith("Z") ? "UTC" : undefined);
    const read = zone === undefined || zone === known ? first : readWhen(words, zone, now());
    if (read === undefined) return REPEATS.test(words) ? NO_PATTERN : NO_TIME;
    if (read.task === "") return NO_TASK;
    if (zone === undefined) return NO_ZONE;
    const [run] = findRuns({ ...read, zone }, now(), 1);
    if (run === undefined) return PAST;
    if (run - now() > MAX_AHEAD_MS) return TOO_FAR;
    if (isTooOften({ ...read, zone }, now())) return TOO_OFTEN;
    return { time: read.time, task: read.task.slice(0, MAX_TASK_CHARS), pattern: read.pattern, zone };
  }

  return async ({ key, conversationId, author, reply, words, replaces }) => {
    const before = replaces === undefined ? undefined : await schedules.read(replaces);
    if (replaces !== undefined && before === undefined) return GONE;
    if (before !== undefined && !isSamePerson(author, before)) return NOT_THE_MAKER;
    const denial = await findDenial(deps, { author, reply });
    if (denial !== undefined) return denial.refusal;
    const read = readWords(words, before?.zone ?? (await findZone({ author, reply })));
    if (typeof read === "string") return read;
    return {
      v: 1,
      id: toId(`${key} ${words}`),
      state: "draft",
      ...read,
      conversationId: before?.conversationId ?? conversationId,
      reply: before?.reply ?? toLasting(reply),
      author,
      madeAt: now(),
      failures: 0,
      ...(replaces !== undefined && { replaces }),
    };
  };
}

/** The same request always makes the same id, so a retry adds nothing. */
function toId(request: string): string {
  return toTurnId(request)
    .replace(/[^a-z0-9]/gi, "")
    .slice(0, ID_CHARS)
    .toLowerCase();
}
