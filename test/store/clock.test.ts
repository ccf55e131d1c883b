import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { message } from "../../lab/support/events.ts";
import { silent } from "../../lab/support/log.ts";
import { createSqliteJournal } from "../../src/queue/sqlite-journal.ts";
import { createClock } from "../../src/store/clock.ts";

const HOUR = 3_600_000;
const YEARS = 20 * 365 * 24 * HOUR;
const TODAY = Date.UTC(2026, 10, 22);

/** A machine with an adjustable clock, in addition to the real time. */
function machine(wallMs = TODAY) {
  let steadyMs = 0;
  return {
    wall: () => wallMs,
    steady: () => steadyMs,
    pass(ms: number) {
      wallMs += ms;
      steadyMs += ms;
    },
    /** The machine is off, so its steady time restarts too. */
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
  test("the clock of a database follows the system's clock, and continues from there after a restart", () => {
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
    test(`the clock of a database ignores a jump of years ${name}, during a run or between two runs`, () => {
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

  test("the clock of a database continues evenly after a first start with a wrong clock, even after a correction", () => {
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

  test("the clock of a database continues while the disk accepts no writes", () => {
    const [database, time] = [new DatabaseSync(":memory:"), machine()];
    const now = createClock(database, time);
    database.exec("PRAGMA query_only = ON");
    time.pass(HOUR);
    expect(now()).toBe(TODAY + HOUR);
  });
});

describe("the queue after the system's clock jumped by years", () => {
  for (const jump of [YEARS, -YEARS]) {
    test(`a second delivery is still recognized after a clock jump: ${jump / HOUR} hours`, async () => {
      const [database, time] = [new DatabaseSync(":memory:"), machine()];
      const event = message("once");
      // A starting process deletes old claims.
      const start = () => createSqliteJournal({ database, log: silent, now: createClock(database, time) });
      const journal = start();
      await journal.accept(event);
      const id = String(database.prepare("SELECT seq FROM queue_event").get()?.["seq"]);
      const entry = { id, event, partition: 0, deaths: 0 };
      const started = await journal.begin({ id: event.conversationId, partition: 0 }, [entry]);
      if (started.type === "started") await started.right.settle([entry]);
      time.set(TODAY + jump);
      expect(await start().accept(event)).toBe(false);
      time.pass(49 * HOUR);
      expect(await start().accept(event)).toBe(true);
    });
  }
});
