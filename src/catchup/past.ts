import { findMoment, readTimes } from "../settings/local-time.ts";

const DAY_MS = 86_400_000;

/**
 * Reads a time in the past by the clocks of `zone`, such as `monday`, `14:00` or `2 hours ago`: a day starts at midnight.
 * Undefined if the words are anything else. All times are in Unix milliseconds.
 */
export function readPast(words: string, zone: string, now: number): number | undefined {
  const [found, ...others] = readTimes(words, zone, now, {});
  if (found === undefined || others.length > 0 || found.text.length < words.trim().length) return undefined;
  const { start, date, exactAt, hasClock } = found;
  const toMoment = (day: Date) =>
    findMoment(`${day.toISOString().slice(0, 10)}T${hasClock ? date.toISOString().slice(11, 16) : "00:00"}:00`, zone);
  const backDays = start.isCertain("day") ? 0 : start.isCertain("weekday") ? 7 : 1;
  const moments =
    exactAt === undefined ? [date, new Date(date.getTime() - backDays * DAY_MS)].map(toMoment) : [exactAt];
  return moments.find((moment) => moment <= now);
}
