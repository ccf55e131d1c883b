import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { advance, bringBack, findDue, MAX_LATE_MS, type Schedule } from "../../src/schedules/schedule.ts";
import { findRuns } from "../../src/schedules/when.ts";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const START = Date.parse("2026-03-27T00:00:30Z");

function toSchedule(pattern: string): Schedule {
  const zone = "Europe/Berlin";
  const [next] = findRuns({ pattern, zone }, START, 1);
  return {
    v: 1,
    id: "a1",
    state: "active",
    time: "",
    task: "x",
    pattern,
    zone,
    conversationId: "test:a",
    reply: { platform: "test", channelId: "general" },
    author: { id: "ada", name: "Ada" },
    madeAt: START,
    failures: 0,
    ...(next !== undefined && { next }),
  };
}

/** What happens when someone looks at these times, in this order. The queue accepts each run once. */
function look(pattern: string, times: readonly number[]) {
  const ran: number[] = [];
  let one = toSchedule(pattern);
  let before = Number.NEGATIVE_INFINITY;
  for (const at of times) {
    if (at < before) one = bringBack(one, at) ?? one;
    before = at;
    const due = findDue(one, at);
    if (due === undefined) continue;
    if (!due.isMissed && !ran.includes(due.dueAt)) ran.push(due.dueAt);
    one = advance(one, due, at);
  }
  return { ran, one };
}

const LOOKS_PER_HOUR = 6;
const STEP_MS = HOUR_MS / LOOKS_PER_HOUR;
const regularly = (from: number, hours: number) =>
  Array.from({ length: hours * LOOKS_PER_HOUR }, (_, index) => from + index * STEP_MS);

describe("the runs of a schedule", () => {
  test("every run happens once while someone looks, also on the night when the clocks change", () => {
    const { ran } = look("*/30 * * * *", regularly(START, 72));
    expect(ran).toEqual(findRuns(toSchedule("*/30 * * * *"), START, 143));
  });

  test("after a pause, only the newest run is made up for", () => {
    const { ran } = look("0 * * * *", [START, START + 5.5 * HOUR_MS, START + 5.6 * HOUR_MS]);
    expect(ran).toEqual([START - 30_000 + 5 * HOUR_MS]);
  });

  test("a run that is too late is skipped", () => {
    const { ran, one } = look("0 9 * * *", [START, START + 9 * HOUR_MS + MAX_LATE_MS]);
    expect(ran).toEqual([]);
    expect(one.last?.outcome).toBe("missed");
    expect(one.next).toBe(Date.parse("2026-03-28T08:00:00Z"));
  });

  test("a single run that is too late is missed, and no run is left", () => {
    const one = toSchedule("2026-03-28T09:00:00Z");
    const now = (one.next ?? 0) + MAX_LATE_MS + 1;
    const due = findDue(one, now);
    expect(due).toEqual({ dueAt: one.next, isMissed: true });
    expect(due && advance(one, due, now).next).toBeUndefined();
  });

  test("a clock that jumps never doubles a run, and loses none after it is set right", () => {
    const jump = fc.record({
      atMinute: fc.integer({ min: 1, max: 600 }),
      byMinutes: fc.integer({ min: -600, max: 3_000 }),
      forMinutes: fc.integer({ min: 1, max: 120 }),
    });
    fc.assert(
      fc.property(jump, ({ atMinute, byMinutes, forMinutes }) => {
        const times = regularly(START, 80).map((at) => {
          const minute = (at - START) / MINUTE_MS;
          const isWrong = minute >= atMinute && minute < atMinute + forMinutes;
          return isWrong ? at + byMinutes * MINUTE_MS : at;
        });
        const { ran } = look("0 * * * *", times);
        expect(new Set(ran).size).toBe(ran.length);
        // The first look at the right time notices that the clock was set back.
        const rightAgain = START + Math.ceil(((atMinute + forMinutes) * MINUTE_MS) / STEP_MS) * STEP_MS;
        const expected = findRuns(toSchedule("0 * * * *"), rightAgain, 20);
        expect(ran).toEqual(expect.arrayContaining(expected));
      }),
      { numRuns: 40 },
    );
  });
});
