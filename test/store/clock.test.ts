import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { openEventTable } from "../../src/queue/embedded/event-table.ts";
import { createClock } from "../../src/store/clock.ts";
import { createSqliteStore } from "../../src/store/sqlite.ts";
import { message } from "../support/events.ts";

const HOUR = 3_600_000;
const YEARS = 20 * 365 * 24 * HOUR;
const TODAY = Date.UTC(2026, 10, 22);

/** A machine whose clock can be set, beside the time that really goes by. */
function machine(wallMs = TODAY) {
  let steadyMs = 0;
  return {
    wall: () => wallMs,
    steady: () => steadyMs,
    pass(ms: number) {
      wallMs += ms;
      steadyMs += ms;
    },
    /** As while nothing runs: then the time that runs evenly begins anew, too. */
    rest(ms: number) {
      wallMs += ms;
      steadyMs = 0;
    },
    set(ms: number) {
      wallMs = ms;
    },
  };
}

describe("the clock of a database", () => {
  test("the clock of a database goes with the system's, and goes on from there after a restart", () => {
    const [database, time] = [new DatabaseSync(":memory:"), machine()];
    const now = createClock(database, time);
    time.pass(HOUR);
    expect(now()).toBe(TODAY + HOUR);
    time.rest(5 * HOUR);
    expect(createClock(database, time)()).toBe(TODAY + 6 * HOUR);
  });

  for (const [name, jump] of [
    ["ahead", YEARS],
    ["back", -YEARS],
  ] as const) {
    test(`takes no part in a jump of years ${name} while it runs, or while it rests`, () => {
      const [database, time] = [new DatabaseSync(":memory:"), machine()];
      const now = createClock(database, time);
      time.set(TODAY + jump);
      time.pass(HOUR);
      expect(now()).toBe(TODAY + HOUR);
      time.set(TODAY + HOUR);
      time.pass(HOUR);
      expect(now()).toBe(TODAY + 2 * HOUR);
      for (let start = 1; start <= 100; start++) {
        time.rest(start % 2 === 0 ? -jump : jump);
        expect(createClock(database, time)()).toBe(TODAY + 2 * HOUR);
      }
    });
  }

  test("the clock of a database goes on evenly from a first start with a wrong clock, also once that is set right", () => {
    const [database, time] = [new DatabaseSync(":memory:"), machine(0)];
    const now = createClock(database, time);
    time.set(TODAY);
    time.pass(HOUR);
    expect(now()).toBe(HOUR);
    time.rest(HOUR);
    expect(createClock(database, time)()).toBe(2 * HOUR);
  });

  test("the clock of a database never goes back", () => {
    const [database, time] = [new DatabaseSync(":memory:"), machine()];
    const now = createClock(database, time);
    let before = now();
    for (let step = 0; step < 500; step++) {
      time.set(time.wall() + Math.round((Math.random() - 0.5) * 10 ** (step % 13)));
      time.pass(step % 7);
      expect(now()).toBeGreaterThanOrEqual(before);
      before = now();
    }
  });

  test("the clock of a database goes on while nothing can be written", () => {
    const [database, time] = [new DatabaseSync(":memory:"), machine()];
    const now = createClock(database, time);
    database.exec("PRAGMA query_only = ON");
    time.pass(HOUR);
    expect(now()).toBe(TODAY + HOUR);
  });
});

describe("after a jump of the system's clock by years", () => {
  for (const jump of [YEARS, -YEARS]) {
    test(`a stored value is still there, and expires in time: ${jump / HOUR} hours`, async () => {
      const [database, time] = [new DatabaseSync(":memory:"), machine()];
      const options = { table: "kept", now: createClock(database, time) };
      const store = createSqliteStore(database, options);
      await store.set("key", "value", 24 * HOUR);
      time.set(TODAY + jump);
      time.pass(HOUR);
      expect(await store.get("key")).toBe("value");
      time.pass(24 * HOUR);
      expect(await store.get("key")).toBeUndefined();
      await store.disconnect();
    });

    test(`a delivery is still known to be the second one: ${jump / HOUR} hours`, () => {
      const [database, time] = [new DatabaseSync(":memory:"), machine()];
      const event = message("once");
      const table = openEventTable(database, createClock(database, time));
      table.claim(event);
      table.finish([event]);
      time.set(TODAY + jump);
      const restarted = openEventTable(database, createClock(database, time));
      restarted.sweep();
      expect(restarted.claim(event)).toBe(false);
      time.pass(49 * HOUR);
      restarted.sweep();
      expect(restarted.claim(event)).toBe(true);
    });
  }
});
