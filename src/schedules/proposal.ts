import type { Actor, ScheduleForm } from "../port/catalogue.ts";
import { type EventBase, MAX_SCHEDULE_CHARS, type ScheduleFields } from "../port/events.ts";
import { isSamePerson } from "../port/identity.ts";
import { toTurnId } from "../port/ids.ts";
import type { Services } from "../services/services.ts";
import { isZone } from "../settings/timezone.ts";
import { findChangeRefusal, findDenial } from "./rights.ts";
import { toLasting } from "./schedule.ts";
import type { Schedules } from "./schedules.ts";
import { findRuns, isTooOften, MAX_AHEAD_MS, REPEATS, readWhen } from "./when.ts";
import { type Shown, say, toFields, toShown } from "./wording.ts";

const ID_CHARS = 6;

export const HOW =
  "Write when and what: `/schedule weekdays at 9:00 what is still open in here?`, or `/schedule tomorrow 14:00 remind me to call Ana`.";
const NO_TIME = "I couldn't find a time in that. Write it like `weekdays at 9:00` or `tomorrow 14:00`.";
const NO_PATTERN =
  "I can't repeat it like that. I know `every monday and friday at 10:00`, `every 2 hours`, `first of the month`, or five fields of cron.";
const NO_TASK = "I understood when, but not what to do then. Write both.";
const LONG_TASK = `The task can have at most ${MAX_SCHEDULE_CHARS.task} characters.`;
const OF_TASK: ReadonlySet<string> = new Set([NO_TASK, LONG_TASK]);
const NO_ZONE =
  "In which time zone? Add its name after the time, such as `weekdays at 9:00 Europe/Berlin`. `/timezone` sets one for the whole channel.";
export const PAST = "That time has passed. Choose one in the future.";
const TOO_FAR = "That's more than a year away. I can schedule at most a year ahead.";
const TOO_OFTEN = "That's too often: leave at least 15 minutes between runs.";
const TAKEN_OVER = "_This makes it your schedule: it then runs with your rights and counts against your limits._";

/** A request for a schedule, from a command, a tool or a form. */
export interface Wish extends Pick<EventBase, "key" | "conversationId" | "author" | "reply"> {
  /** When and what, in the person's words: in one text, or apart. */
  words: string | ScheduleFields;
  /** The schedule or the draft that it changes. */
  replaces?: string;
}

export interface Proposals {
  /** Keeps a request as a draft. Resolves to its card, or to the reason why it cannot. */
  propose(wish: Wish): Promise<Shown>;
  form: ScheduleForm;
}

export function createProposals(deps: Services & { schedules: Schedules }): Proposals {
  const { schedules, settings, now } = deps;

  /** Undefined if neither the person's profile nor the channel nor an earlier schedule names a zone. */
  async function findZone({ author, reply }: Actor): Promise<string | undefined> {
    if (author.timeZone !== undefined && isZone(author.timeZone)) return author.timeZone;
    const { timezone } = await settings.read(reply);
    if (timezone !== undefined) return timezone;
    const own = await schedules.list({ person: { platform: reply.platform, id: author.id } });
    return own.toSorted((one, other) => other.madeAt - one.madeAt)[0]?.zone;
  }

  /** Reads a time by the clocks of the zone that its words name, or else of the known zone. */
  function readTime(words: string, known: string | undefined) {
    const first = readWhen(words, known ?? "UTC", now());
    // "in 20 minutes" is the same moment in every zone.
    const zone = first?.zone ?? known ?? (first?.pattern.endsWith("Z") ? "UTC" : undefined);
    const read = zone === undefined || zone === known ? first : readWhen(words, zone, now());
    if (read === undefined) return REPEATS.test(words) ? NO_PATTERN : NO_TIME;
    if (zone === undefined) return NO_ZONE;
    const [run] = findRuns({ ...read, zone }, now(), 1);
    if (run === undefined) return PAST;
    if (run - now() > MAX_AHEAD_MS) return TOO_FAR;
    if (isTooOften({ ...read, zone }, now())) return TOO_OFTEN;
    return { ...read, zone };
  }

  function readWords(words: Wish["words"], known: string | undefined) {
    const isApart = typeof words !== "string";
    const read = readTime(isApart ? words.time : words, known);
    if (typeof read === "string") return read;
    if (isApart && read.task !== "") {
      return `I understood only \`${read.time}\`. Leave out the rest, or write it into the task.`;
    }
    const task = isApart ? words.task.trim() : read.task;
    if (task === "") return NO_TASK;
    if (task.length > MAX_SCHEDULE_CHARS.task) return LONG_TASK;
    return { time: read.time, task, pattern: read.pattern, zone: read.zone };
  }

  /** Resolves to the reason if the person cannot have that. */
  async function understand({ author, reply }: Actor, { words, replaces }: Pick<Wish, "words" | "replaces">) {
    const before = replaces === undefined ? undefined : await schedules.read(replaces);
    if (replaces !== undefined) {
      const refusal = findChangeRefusal(deps, { author, reply }, before);
      if (refusal !== undefined) return refusal;
    }
    const denial = await findDenial(deps, { author, reply });
    if (denial !== undefined) return denial.refusal;
    const read = readWords(words, before?.zone ?? (await findZone({ author, reply })));
    return typeof read === "string" ? read : { before, read };
  }

  return {
    async propose(wish) {
      const { key, conversationId, author, reply, words } = wish;
      const understood = await understand(wish, wish);
      if (typeof understood === "string") return say(understood);
      const { before, read } = understood;
      // A draft changes in its place. A schedule changes when the draft of its new version is confirmed.
      const { id = toId(key, words), replaces } = before?.state === "draft" ? before : { replaces: before?.id };
      const stored = await schedules.draft({
        v: 1,
        id,
        state: "draft",
        ...read,
        conversationId: before?.conversationId ?? conversationId,
        reply: before?.reply ?? toLasting(reply),
        author,
        madeAt: now(),
        failures: 0,
        ...(replaces !== undefined && { replaces }),
      });
      const shown = toShown(stored, now());
      const isTakenOver = before !== undefined && !isSamePerson(author, before);
      return isTakenOver ? { ...shown, text: `${shown.text}\n\n${TAKEN_OVER}` } : shown;
    },
    form: {
      async read(id, by) {
        const one = await schedules.read(id);
        return one && findChangeRefusal(deps, by, one) === undefined ? toFields(one, now()) : undefined;
      },
      async findProblems(id, fields, by) {
        const understood = await understand(by, { words: fields, replaces: id });
        if (typeof understood !== "string") return {};
        return OF_TASK.has(understood) ? { task: understood } : { time: understood };
      },
    },
  };
}

/** The same request always makes the same id, so a retry adds nothing. */
function toId(key: string, words: Wish["words"]): string {
  return toTurnId(`${key} ${typeof words === "string" ? words : `${words.time}: ${words.task}`}`)
    .replace(/[^a-z0-9]/gi, "")
    .slice(0, ID_CHARS)
    .toLowerCase();
}
