/** Times by the clocks of a time zone. All moments are in Unix milliseconds. */
import { type ParsedComponents, type ParsingOption, parse } from "chrono-node";
import { Cron } from "croner";

/** A time that words name. */
export interface NamedTime {
  /** The words, and their position in the text. */
  text: string;
  index: number;
  start: ParsedComponents;
  /** The clocks of the zone at that time, as if they showed UTC. */
  date: Date;
  /** The moment of a time such as "in two hours", which is the same in every zone. Absent for all others. */
  exactAt: number | undefined;
  /** The words name a time of day. */
  hasClock: boolean;
}

/** Words for which the time of day is known, although no hour is named. */
const NAMED_CLOCK = /\b(?:morning|noon|afternoon|evening|night|tonight|midnight)\b/i;

/** The times that a text names, read by the clocks of a zone. */
export function readTimes(text: string, zone: string, now: number, option: ParsingOption): NamedTime[] {
  const local = now + offsetAt(zone, now);
  return parse(text, { instant: new Date(local), timezone: 0 }, option).map(({ text: words, index, start }) => {
    const date = start.date();
    const isRelative = start.tags().has("result/relativeDateAndTime");
    const exactAt = isRelative ? now + date.getTime() - local : undefined;
    return { text: words, index, start, date, exactAt, hasClock: start.isCertain("hour") || NAMED_CLOCK.test(text) };
  });
}

/** The moment of `2026-12-01T14:00:00` by the clocks of a zone, or of the same with `Z`. */
export function findMoment(time: string, zone: string): number {
  const [moment] = new Cron(time, { timezone: zone }).nextRuns(1, new Date(0));
  return moment?.getTime() ?? 0;
}

/** `Mon 1 Dec 09:00 (Europe/Berlin)`; with the year, unless it is the current one. */
export function describeTime(at: number, zone: string, now: number): string {
  return `${toClock(at, zone, now)} (${zone})`;
}

/** Without the zone. */
export function toClock(at: number, zone: string, now: number): string {
  const parts = (ms: number) =>
    Object.fromEntries(
      new Intl.DateTimeFormat("en-GB", {
        timeZone: zone,
        weekday: "short",
        day: "numeric",
        month: "short",
        year: "numeric",
        hour: "2-digit",
        minute: "2-digit",
        hourCycle: "h23",
      })
        .formatToParts(ms)
        .map(({ type, value }) => [type, value]),
    );
  const { weekday, day, month, year, hour, minute } = parts(at);
  const isOtherYear = year !== parts(now)["year"];
  return [weekday, day, month, ...(isOtherYear ? [year] : []), `${hour}:${minute}`].join(" ");
}

/** Milliseconds that the clocks of a zone are ahead of UTC. */
function offsetAt(zone: string, at: number): number {
  const name = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" })
    .formatToParts(at)
    .find(({ type }) => type === "timeZoneName")?.value;
  const [, sign, hours, minutes] = /GMT([+-])(\d{2}):(\d{2})/.exec(name ?? "") ?? [];
  const ms = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000;
  return sign === "-" ? -ms : ms;
}
