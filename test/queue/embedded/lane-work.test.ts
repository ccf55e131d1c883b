import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { openEventTable } from "../../../src/queue/embedded/event-table.ts";
import { createLaneWork } from "../../../src/queue/embedded/lane-work.ts";
import { createLanes } from "../../../src/queue/embedded/lanes.ts";
import { StoreError } from "../../../src/store/outage.ts";
import { message } from "../../support/events.ts";
import { recordingLog } from "../../support/log.ts";

/** Works on one event that fails `times` times as `toError` says, until it is done or given up. */
async function workOn(toError: () => Error, times: number) {
  const table = openEventTable(new DatabaseSync(":memory:"));
  const lanes = createLanes();
  const { log, lines } = recordingLog();
  const event = message("hello");
  table.claim(event);
  lanes.add(event);
  let ready = Promise.withResolvers<void>();
  const workOnLane = createLaneWork({ table, lanes, log, retryMs: [1, 1], onReady: () => ready.resolve() });
  let attempts = 0;
  const worker = {
    take: () => [event],
    async work() {
      attempts += 1;
      if (attempts <= times) throw toError();
      return [event];
    },
    onAccepted: () => {},
  };
  while (table.waiting(log).length > 0) {
    const lane = lanes.next();
    if (lane === undefined) throw new Error("the lane is ready");
    ready = Promise.withResolvers();
    await workOnLane(lane, worker, new AbortController().signal);
    if (lane.state === "pausing") await ready.promise;
  }
  return { attempts, isGivenUp: lines.some(({ msg }) => String(msg).includes("given up")) };
}

describe("work that fails", () => {
  test("is given up after ten times", async () => {
    expect(await workOn(() => new Error("always"), 50)).toEqual({ attempts: 10, isGivenUp: true });
  });

  test("is never given up for a store that is away", async () => {
    expect(await workOn(() => new StoreError("away"), 50)).toEqual({ attempts: 51, isGivenUp: false });
  });
});
