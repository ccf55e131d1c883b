import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { message } from "../../lab/support/events.ts";
import { recordingLog } from "../../lab/support/log.ts";
import { createEventQueue } from "../../src/queue/event-queue.ts";
import { createSqliteJournal } from "../../src/queue/sqlite-journal.ts";
import { StoreError } from "../../src/store/outage.ts";
import { eventually } from "../support/eventually.ts";

/** Works on one event until it is done or given up. The work fails `times` times with `toError`. */
async function workOn(toError: () => Error, times: number) {
  const { log, lines } = recordingLog();
  const own = createSqliteJournal({ database: new DatabaseSync(":memory:"), log });
  const queue = createEventQueue({ journals: { own }, maxActive: 1, log, retryMs: [1, 1] });
  const event = message("hello");
  await queue.accept(event);
  let attempts = 0;
  queue.start({
    take: () => [event],
    async work() {
      attempts += 1;
      if (attempts <= times) throw toError();
      return [event];
    },
    onAccepted: () => {},
  });
  await eventually(queue.depth).toEqual({ waiting: 0, active: 0 });
  return { attempts, isGivenUp: lines.some(({ msg }) => String(msg).includes("given up")) };
}

describe("work that fails", () => {
  test("the queue gives up work that fails ten times", async () => {
    expect(await workOn(() => new Error("always"), 50)).toEqual({ attempts: 10, isGivenUp: true });
  });

  test("the queue never gives up work because a store is unreachable", async () => {
    expect(await workOn(() => new StoreError("away"), 50)).toEqual({ attempts: 51, isGivenUp: false });
  });
});
