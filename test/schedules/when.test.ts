import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findRuns, isTooOften, readWhen } from "../../src/schedules/when.ts";

const NOW = Date.parse("2026-11-29T00:30:00Z");
const BERLIN = "Europe/Berlin";
/** They change their clocks by an hour or half an hour, in both halves of the year, and one of them at midnight. */
const ZONES = [BERLIN, "America/New_York", "America/Santiago", "Australia/Lord_Howe", "Pacific/Chatham"];
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

function read(words: string) {
  const { pattern, task, zone = BERLIN } = readWhen(words, BERLIN, NOW) ?? {};
  if (pattern === undefined) return undefined;
  const [first] = findRuns({ pattern, zone }, NOW, 1);
  return [pattern, task, first === undefined ? "never" : new Date(first).toISOString().slice(0, 16)];
}

/** Creating a format takes longer than using it a hundred times. */
const FORMATS = new Map(
  ZONES.map((timeZone) => {
    const format = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "short" });
    return [timeZone, format] as const;
  }),
);

/** The wall clock of a zone, as `2026-11-29 01:30`. */
function toLocal(at: number, zone: string): string {
  return FORMATS.get(zone)?.format(at) ?? "";
}

describe("the time of a schedule", () => {
  test.each([
    ["weekdays at 9:00 what is open?", "0 9 * * 1-5", "what is open?", "2026-11-30T08:00"],
    ["at 8 every weekday post it", "0 8 * * 1-5", "post it", "2026-11-30T07:00"],
    ["every Monday 8:30 post the list", "30 8 * * 1", "post the list", "2026-11-30T07:30"],
    ["post the list every monday at 9", "0 9 * * 1", "post the list", "2026-11-30T08:00"],
    ["mondays and thursdays at 10:15 x", "15 10 * * 1,4", "x", "2026-11-30T09:15"],
    ["every monday 3 people help", "0 9 * * 1", "3 people help", "2026-11-30T08:00"],
    ["on weekends at 11 x", "0 11 * * 0,6", "x", "2026-11-29T10:00"],
    ["daily at noon x", "0 12 * * *", "x", "2026-11-29T11:00"],
    ["every evening sum up", "0 20 * * *", "sum up", "2026-11-29T19:00"],
    ["every monday at 9.30 x", "30 9 * * 1", "x", "2026-11-30T08:30"],
    ["every 2 hours check", "0 */2 * * *", "check", "2026-11-29T01:00"],
    ["hourly x", "0 * * * *", "x", "2026-11-29T01:00"],
    ["every 15 minutes x", "*/15 * * * *", "x", "2026-11-29T00:45"],
    ["first of the month send it", "0 9 1 * *", "send it", "2026-12-01T08:00"],
    ["on the 15th of every month at 10 x", "0 10 15 * *", "x", "2026-12-15T09:00"],
    ["last day of the month at 17:00 x", "0 17 L * *", "x", "2026-11-30T16:00"],
    ["first monday of the month at 9am x", "0 9 * * MON#1", "x", "2026-12-07T08:00"],
    ["last friday of the month x", "0 9 * * FRI#L", "x", "2026-12-25T08:00"],
    ["weekly on friday at 16:00 x", "0 16 * * 5", "x", "2026-12-04T15:00"],
    ["30 9 * * 1-5 x", "30 9 * * 1-5", "x", "2026-11-30T08:30"],
    ["weekdays at 9:00 America/New_York x", "0 9 * * 1-5", "x", "2026-11-30T14:00"],
    ["tomorrow 14:00 call Ana", "2026-11-30T14:00:00", "call Ana", "2026-11-30T13:00"],
    ["call Ana tomorrow at 2pm", "2026-11-30T14:00:00", "call Ana", "2026-11-30T13:00"],
    ["tomorrow do it", "2026-11-30T09:00:00", "do it", "2026-11-30T08:00"],
    ["tonight do it", "2026-11-29T22:00:00", "do it", "2026-11-29T21:00"],
    ["in 20 minutes check", "2026-11-29T00:50:00Z", "check", "2026-11-29T00:50"],
    ["in one hour check", "2026-11-29T01:30:00Z", "check", "2026-11-29T01:30"],
    ["sum up yesterday tomorrow at 9", "2026-11-30T09:00:00", "sum up yesterday", "2026-11-30T08:00"],
    ["tomorrow at 9 plan weekends", "2026-11-30T09:00:00", "plan weekends", "2026-11-30T08:00"],
    ["today at 9:00 UTC x", "2026-11-29T09:00:00Z", "x", "2026-11-29T09:00"],
    ["yesterday at 9 x", "2026-11-28T09:00:00", "x", "never"],
  ])("the words %j are read as %s", (words, ...expected) => expect(read(words)).toEqual(expected));

  test.each([
    "what is up?",
    "every 7 hours x",
    "every 90 minutes x",
    "every other day x",
    "every other monday at 9 x",
    "every year on june 5 x",
    "twice a day x",
    "biweekly on monday x",
    "every monday at 9:00 and 17:00 x",
    "every day at 25:00 x",
  ])("the words %j are not understood", (words) => expect(read(words)).toBeUndefined());

  test("a schedule that runs every five minutes is too often", () => {
    expect(isTooOften({ pattern: "*/5 * * * *", zone: "UTC" }, NOW)).toBe(true);
    expect(isTooOften({ pattern: "*/15 * * * *", zone: "UTC" }, NOW)).toBe(false);
  });
});

describe.each(ZONES)("a year in %s", (zone) => {
  const from = Date.parse("2026-01-01T00:00:00Z");

  test("a daily schedule runs once each day, at its time unless the clocks skip that", () => {
    const clock = fc.record({ hour: fc.integer({ min: 0, max: 23 }), minute: fc.constantFrom(0, 15, 30, 45) });
    const check = ({ hour, minute }: { hour: number; minute: number }) => {
      const runs = findRuns({ pattern: `${minute} ${hour} * * *`, zone }, from, 366);
      const locals = runs.map((run) => toLocal(run, zone).split(" "));
      expect(new Set(locals.map(([date]) => date)).size).toBe(366);
      const wanted = `${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}`;
      const others = locals.filter(([, time]) => time !== wanted);
      // The clocks go forward once or twice within 366 days, by an hour at most.
      expect(others.length).toBeLessThanOrEqual(2);
      for (const [date, time] of others) {
        const skipped = Date.parse(`${date}T${time}:00Z`) - Date.parse(`${date}T${wanted}:00Z`);
        expect(skipped).toBeGreaterThan(0);
        expect(skipped).toBeLessThanOrEqual(HOUR_MS);
      }
    };
    fc.assert(fc.property(clock, check), {
      numRuns: 12,
      examples: [[{ hour: 2, minute: 30 }], [{ hour: 0, minute: 0 }]],
    });
  });

  test("an hourly schedule never pauses for more than an hour and a half", () => {
    const runs = findRuns({ pattern: "0 * * * *", zone }, from, 24 * 365);
    const gaps = runs.flatMap((run, index) => (index === 0 ? [] : run - (runs[index - 1] ?? 0)));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(HOUR_MS / 2);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(1.5 * HOUR_MS);
  });

  test("a single time is a time by the clocks of the zone", () => {
    const moments = fc.integer({ min: 1, max: 360 * 48 }).map((halfHours) => from + halfHours * (HOUR_MS / 2));
    fc.assert(
      fc.property(moments, (at) => {
        const local = toLocal(at, zone);
        const { pattern = "" } = readWhen(`${local} x`, zone, at - 2 * DAY_MS) ?? {};
        const [run = 0] = findRuns({ pattern, zone }, at - 2 * DAY_MS, 1);
        expect(toLocal(run, zone)).toBe(local);
      }),
      { numRuns: 60 },
    );
  });
});
