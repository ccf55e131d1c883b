import { Cron } from "croner";
import { findMoment, readTimes } from "../settings/local-time.ts";
import { isZone } from "../settings/timezone.ts";

/** When a schedule runs: a cron pattern, or one moment as ISO time. */
export interface When {
  /** Five fields of cron, `2026-12-01T14:00:00` by the clocks of the zone, or the same with `Z`. */
  pattern: string;
  zone: string;
}

/** The words of a request, taken apart. */
export interface Understood {
  pattern: string;
  /** The time as the person wrote it. */
  time: string;
  /** The zone that the person named, if any. */
  zone: string | undefined;
  /** Everything else: what to do then. */
  task: string;
}

/** Shortest time between two runs. */
const MIN_GAP_MS = 15 * 60_000;
/** A single run can be at most this far ahead. */
export const MAX_AHEAD_MS = 400 * 86_400_000;
/** The number of runs whose gaps are compared with `MIN_GAP_MS`. */
const PROBED_RUNS = 8;
const DEFAULT_TIME = "9:00";

const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const DAY = "(?:sun|mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?)(?:day)?";
const ORDINALS = ["first", "second", "third", "fourth"];
const ORDINAL = `(?:${ORDINALS.join("|")}|last|\\d{1,2}(?:st|nd|rd|th)?)`;
const OF_MONTH = "(?:of (?:the|every|each) month|every month|each month|monthly)";
const NUMBERS = ["one", "two", "three", "four", "five", "six"];
const COUNT = `(?:${NUMBERS.join("|")}|\\d{1,2})`;
/** A bare number is a time only after "at". */
const TIME =
  "(?:(?:at |@ ?)(?<at>\\d{1,2}(?:[:.]\\d{2})?(?: ?[ap]m)?|noon|midnight)|(?<plain>\\d{1,2}[:.]\\d{2}(?: ?[ap]m)?|\\d{1,2} ?[ap]m))";

/** A way to say that something recurs. */
interface Recurrence {
  words: string;
  /** The last three fields of the pattern; or the whole pattern, if it says the minutes itself. */
  toFields(said: string): string | undefined;
  /** The time of day in the words, such as `evening`. A clock time next to the words counts instead. */
  toTime?(said: string): string | undefined;
}

/** The first match counts, so longer wordings come before shorter ones. */
const RECURRENCES: readonly Recurrence[] = [
  { words: "(?:every|each) hour|hourly", toFields: () => "0 * * * *" },
  {
    words: `(?:every|each) ${COUNT} (?:hours?|hrs?|h)`,
    toFields: (said) => toSteps(readCount(said), 24, (step) => `0 */${step} * * *`),
  },
  {
    words: `(?:every|each) ${COUNT} (?:minutes?|mins?)`,
    toFields: (said) => toSteps(readCount(said), 60, (step) => `*/${step} * * * *`),
  },
  {
    words: `(?:on )?(?:the |every )?${ORDINAL} (?:${DAY}) ${OF_MONTH}`,
    toFields: (said) => toNthDay(said),
  },
  {
    words: `(?:on )?(?:the |every )?${ORDINAL}(?: day)? ${OF_MONTH}|(?:every|each) month(?: on the ${ORDINAL})?|monthly(?: on the ${ORDINAL})?`,
    toFields: (said) => toDayOfMonth(said),
  },
  {
    words:
      "(?:every|each) (?:week|work|working |business )days?|(?:on )?(?:week|work|working |business )days|(?:from )?monday to friday",
    toFields: () => "* * 1-5",
  },
  { words: "(?:every|each) weekend|(?:on )?weekends", toFields: () => "* * 0,6" },
  {
    words: `(?:(?:every|each) ${DAY}s?|(?:on )?${DAY}s)(?:(?:,| and|, and) (?:every |on )?${DAY}s?)*`,
    toFields: (said) => toDays(said),
  },
  { words: `(?:every week|weekly)(?: on ${DAY}s?)?`, toFields: (said) => toDays(said) ?? "* * 1" },
  {
    words: `daily|(?:every|each) (?:day|morning|noon|afternoon|evening|night)`,
    toFields: () => "* * *",
    toTime: (said) => /(?:morning|noon|afternoon|evening|night)$/.exec(said)?.[0],
  },
];

const CRON = /^\s*((?:[\d*,/-]+ ){2}[\d*,/L-]+ [\w*,/-]+ [\w*,/#-]+)(?=\s|$)/;
/** `Europe/Berlin`, or `UTC`. */
const ZONE = /^[\s,(]*((?:[A-Z]\w+\/)+[A-Z][\w+-]*|UTC)\b\)?/;

/** Words before a date which say that it repeats. */
export const REPEATS = /\b(?:every|each|twice|biweekly|fortnightly|yearly|annually)\b/i;

/**
 * Splits a request into a time and a task. Reads single times by the clocks of `zone`; `now` is in Unix milliseconds.
 * Undefined if the words name no time.
 */
export function readWhen(words: string, zone: string, now: number): Understood | undefined {
  const text = words.replace(/\s+/g, " ").trim();
  const [cron, recurrence, once] = [readCron(text), readRecurrence(text), readOnce(text, zone, now)];
  if (cron !== undefined || recurrence === undefined) return cron ?? once;
  // The first time in the text counts: "tomorrow at 9 remind me of the report that comes every Monday".
  const isFirst = once !== undefined && text.indexOf(once.time) < text.indexOf(recurrence.time);
  const isAhead = once !== undefined && findRuns({ pattern: once.pattern, zone }, now, 1).length > 0;
  return isFirst && isAhead ? once : recurrence;
}

/** The next runs after a moment, in Unix milliseconds; fewer if there are no more. */
export function findRuns({ pattern, zone }: When, after: number, count: number): number[] {
  if (!isRecurring(pattern)) return [findMoment(pattern, zone)].filter((only) => only > after);
  const cron = new Cron(pattern, { timezone: zone, mode: "5-part" });
  return cron.nextRuns(count, new Date(after)).map((run) => run.getTime());
}

export function isRecurring(pattern: string): boolean {
  return pattern.includes(" ");
}

/** True if two runs come closer together than allowed. */
export function isTooOften(when: When, now: number): boolean {
  const runs = findRuns(when, now, PROBED_RUNS);
  return runs.some((run, index) => index > 0 && run - (runs[index - 1] ?? 0) < MIN_GAP_MS);
}

function readCron(text: string): Understood | undefined {
  const [whole, pattern] = CRON.exec(text) ?? [];
  if (whole === undefined || pattern === undefined) return undefined;
  if (!isCron(pattern)) return undefined;
  return toUnderstood(text, { pattern, at: 0, length: whole.length });
}

function isCron(pattern: string): boolean {
  try {
    return new Cron(pattern, { mode: "5-part" }).getPattern() === pattern;
  } catch {
    return false;
  }
}

function readRecurrence(text: string): Understood | undefined {
  const found = RECURRENCES.flatMap(({ words, ...how }) => {
    const match = new RegExp(
      `(?<=^|[\\s,])(?:${TIME.replace(/\?<\w+>/g, "")} )?(?:${words})(?=$|[\\s,:;.?!])`,
      "i",
    ).exec(text);
    return match === null ? [] : [{ ...how, words, at: match.index, length: match[0].length }];
  });
  const [first] = found.toSorted((one, other) => one.at - other.at);
  if (first === undefined) return undefined;
  const around = text.slice(first.at, first.at + first.length).toLowerCase();
  const before = new RegExp(`^${TIME} `, "i").exec(around);
  const said = before === null ? around : around.slice(before[0].length);
  const after = new RegExp(`^,? ?${TIME}(?=$|[\\s,:;.?!])`, "i").exec(text.slice(first.at + first.length));
  const given = [before, after].flatMap((match) => match?.groups?.["at"] ?? match?.groups?.["plain"] ?? [])[0];
  const fields = first.toFields(said);
  if (fields === undefined) return undefined;
  const clock = readClock(given ?? first.toTime?.(said) ?? DEFAULT_TIME);
  const rest = text.slice(first.at + first.length + (after?.[0].length ?? 0));
  // A second time of day needs a second schedule.
  if (clock === undefined || /^,? ?(?:and|&) (?:at )?\d/i.test(rest)) return undefined;
  const pattern = fields.split(" ").length === 5 ? fields : `${clock.minute} ${clock.hour} ${fields}`;
  return toUnderstood(text, { pattern, at: first.at, length: first.length + (after?.[0].length ?? 0) });
}

function readOnce(text: string, zone: string, now: number): Understood | undefined {
  const moments = readTimes(text, zone, now, { forwardDate: true }).map((found) => {
    const { start, date, exactAt, hasClock } = found;
    const at = exactAt ?? (start.isCertain("timezoneOffset") ? date.getTime() : undefined);
    const clock = hasClock ? date.toISOString().slice(11, 16) : "09:00";
    const pattern =
      at === undefined
        ? `${date.toISOString().slice(0, 10)}T${clock}:00`
        : new Date(at).toISOString().replace(/\.\d+Z/, "Z");
    return { pattern, atMs: findMoment(pattern, zone), at: found.index, length: found.text.length };
  });
  const first = moments.find(({ atMs }) => atMs > now) ?? moments[0];
  // The words ask for a recurrence that the table does not have.
  if (first === undefined || REPEATS.test(text.slice(0, first.at + first.length))) return undefined;
  return toUnderstood(text, first);
}

function toUnderstood(
  text: string,
  { pattern, at, length }: { pattern: string; at: number; length: number },
): Understood {
  const rest = text.slice(at + length);
  const [named, zone] = ZONE.exec(rest) ?? [""];
  const isKnown = zone !== undefined && isZone(zone);
  const after = (isKnown ? rest.slice(named.length) : rest).replace(/^[\s,:;.-]+/, "");
  const before = text.slice(0, at).replace(/[\s,:;-]+$/, "");
  return {
    pattern,
    time: text.slice(at, at + length).trim(),
    zone: isKnown ? zone : undefined,
    task: [before, after].filter(Boolean).join(" "),
  };
}

/** Reads a time of day: `9`, `9.30`, `9am`, `noon` or `evening`. Undefined for any other words, such as `25:00`. */
function readClock(words: string): { hour: number; minute: number } | undefined {
  const text = `at ${words.replace(".", ":")}`;
  const [found] = readTimes(text, "UTC", 0, {});
  if (found === undefined || found.text.length < words.length) return undefined;
  return { hour: found.date.getUTCHours(), minute: found.date.getUTCMinutes() };
}

function readCount(said: string): number {
  const [, count = ""] = said.split(" ");
  const named = NUMBERS.indexOf(count);
  return named < 0 ? Number(count) : named + 1;
}

/** Cron starts its steps again each hour or day, so only divisors give even gaps. */
function toSteps(step: number, of: number, toPattern: (step: number) => string): string | undefined {
  return step > 0 && of % step === 0 && step < of ? toPattern(step) : undefined;
}

function toDays(said: string): string | undefined {
  const days = said.match(new RegExp(`\\b${DAY}`, "gi")) ?? [];
  const numbers = days.map((day) => DAYS.indexOf(day.slice(0, 3).toLowerCase()));
  return numbers.length === 0
    ? undefined
    : `* * ${[...new Set(numbers)].toSorted((one, other) => one - other).join(",")}`;
}

function readOrdinal(said: string): number | "last" | undefined {
  const word = new RegExp(`\\b${ORDINAL}`, "i").exec(said)?.[0].toLowerCase();
  if (word === undefined || word === "last") return word;
  const named = ORDINALS.indexOf(word);
  return named < 0 ? Number.parseInt(word, 10) : named + 1;
}

function toNthDay(said: string): string | undefined {
  const nth = readOrdinal(said);
  const day = new RegExp(`\\b${DAY}\\b`, "i").exec(said)?.[0].slice(0, 3).toUpperCase();
  if (nth === "last") return `* * ${day}#L`;
  return nth !== undefined && nth >= 1 && nth <= 4 ? `* * ${day}#${nth}` : undefined;
}

function toDayOfMonth(said: string): string | undefined {
  const nth = readOrdinal(said) ?? 1;
  if (nth === "last") return "L * *";
  return nth >= 1 && nth <= 31 ? `${nth} * *` : undefined;
}
