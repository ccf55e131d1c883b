import { expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { ada } from "../../lab/support/events.ts";
import type { Schedule } from "../../src/schedules/schedule.ts";

const START = Date.parse("2026-11-29T00:00:30Z");
const FIRST = Date.parse("2026-11-29T01:00:00Z");
const SECOND = Date.parse("2026-11-29T02:00:00Z");

function toSchedule(id: string, next: number): Schedule {
  return {
    v: 1,
    id,
    state: "active",
    time: "every day",
    task: "say the hour",
    pattern: `0 ${new Date(next).getUTCHours()} * * *`,
    zone: "UTC",
    conversationId: "test:a",
    reply: { platform: "test", channelId: "general" },
    author: ada,
    madeAt: START,
    next,
    failures: 0,
  };
}

/** An alarm that counts its reads, and another one on the same store. */
function start(options: Parameters<typeof startEngine>[0] = {}) {
  const engine = startEngine({ scripts: [["One."], ["Two."]], ...options });
  const { schedules } = engine;
  const reads = { all: 0, single: 0 };
  const state = { now: START };
  const counted = {
    ...schedules,
    list(of?: Parameters<typeof schedules.list>[0]) {
      reads.all += 1;
      return schedules.list(of);
    },
    read(id: string) {
      reads.single += 1;
      return schedules.read(id);
    },
  };
  const alarm = engine.openAlarm(() => state.now, counted);
  const other = engine.openAlarm(() => state.now);
  return { ...engine, schedules, reads, state, alarm, other };
}

test("an idle alarm reads the schedules again only after a run was added", async () => {
  const { alarm, other, schedules, reads, state, idle, texts } = start();
  await schedules.change("a", () => toSchedule("a", SECOND));
  await alarm.look();
  reads.all = 0;
  for (let time = 0; time < 3; time++) await alarm.look();
  expect(reads).toEqual({ all: 0, single: 0 });
  await schedules.change("b", () => toSchedule("b", FIRST));
  state.now = FIRST + 1;
  await alarm.look();
  await idle();
  expect(reads.all).toBe(1);
  expect(texts()).toHaveLength(1);
  state.now = SECOND + 1;
  await other.look();
  await idle();
  await alarm.look();
  await idle();
  expect(reads.all).toBe(1);
  expect(texts()).toHaveLength(2);
});

test("an alarm finds a run that moved to an earlier time, and skips one that was paused", async () => {
  const { alarm, schedules, state, idle, texts } = start();
  await schedules.change("a", () => toSchedule("a", SECOND));
  await schedules.change("b", () => toSchedule("b", FIRST));
  await alarm.look();
  await schedules.change("a", () => toSchedule("a", FIRST));
  await schedules.change("b", (one) => {
    const { next: _, ...rest } = one ?? toSchedule("b", FIRST);
    return { ...rest, state: "paused" };
  });
  state.now = FIRST + 1;
  await alarm.look();
  await idle();
  expect(texts()).toHaveLength(1);
});

test("an alarm looks only once a minute at a due schedule of a platform that its process cannot write to", async () => {
  const { alarm, schedules, reads, state } = start({
    adapterOf() {
      throw new Error("This platform is not enabled.");
    },
  });
  await schedules.change("a", () => toSchedule("a", START));
  for (let second = 0; second < 60; second++) {
    state.now = START + second * 1_000;
    await alarm.look();
  }
  expect(reads.single).toBe(1);
  state.now = START + 60_000;
  await alarm.look();
  expect(reads.single).toBe(2);
  expect(await schedules.read("a")).toMatchObject({ next: START });
});
