import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { createSqliteInsight } from "../../src/insight/sqlite-insight.ts";
import { createTrends } from "../../src/insight/trends.ts";
import { createTurnWatch } from "../../src/insight/turn-watch.ts";
import { NO_RIGHT, type Right, withFence } from "../../src/port/right.ts";
import { createSqliteCounters } from "../../src/store/counters.ts";
import { StoreError } from "../../src/store/outage.ts";
import { eventually } from "../support/eventually.ts";

const used = { promptTokens: 1, completionTokens: 1, estimatedTokens: 0 };
const author = { id: "ada", name: "Ada" };
const turn = {
  turnId: "turn",
  conversationId: "test:a",
  reply: { platform: "test", channelId: "a" },
  author,
  model: "m",
};
const end = { number: 1, outcome: "interrupted", messages: 1, used, calls: [] };

function openWatches() {
  const database = new DatabaseSync(":memory:");
  const counters = createSqliteCounters(database, Date.now);
  const shared = createSqliteInsight(database, Date.now);
  const open = (process: string, push = shared.push) => {
    const trends = createTrends({ counters, now: Date.now, log: silent });
    return createTurnWatch({ store: { ...shared, push }, trends, process, now: Date.now, log: silent });
  };
  return { open, push: shared.push };
}

test("if a process dies while it records a failure, the list of failures gets that failure once the turn resumes", async () => {
  const { open, push } = openWatches();
  let pushes = 0;
  const died = Promise.withResolvers<void>();
  const first = open("first", (...given) => {
    if (pushes++ === 0) return push(...given);
    died.resolve();
    return new Promise(() => {});
  });
  void first.begin({ ...turn, askedAt: 0, attempts: 1 }, NO_RIGHT).end({ ...end, note: "" });
  await died.promise;
  const second = open("second");
  await second.makeUp({ ...turn, ...end, at: 1 });
  for (const list of [await second.turns(), await second.failures()]) {
    expect(list.map(({ turnId, outcome }) => [turnId, outcome])).toEqual([["turn", "interrupted"]]);
  }
});

test("a failure that happens while the store restarts is in the list of failures once the store is back", async () => {
  const { open, push } = openWatches();
  let failures = 3;
  const watch = open("first", async (list, ...given) => {
    if (list === "failures" && failures-- > 0) throw new StoreError("away");
    return push(list, ...given);
  });
  await watch.begin({ ...turn, askedAt: 0, attempts: 1 }, NO_RIGHT).end({ ...end, note: "" });
  await eventually(async () => (await watch.failures()).map(({ turnId }) => turnId)).toEqual(["turn"]);
});

test("a failure that one list did not accept goes to all lists again, and is announced once", async () => {
  const { open, push } = openWatches();
  const pushed: string[] = [];
  const watch = open("first", async (list, ...given) => {
    pushed.push(list);
    if (pushed.length === 2) throw new StoreError("away");
    return push(list, ...given);
  });
  await watch.begin({ ...turn, askedAt: 0, attempts: 1 }, NO_RIGHT).end({ ...end, note: "" });
  expect(pushed).toEqual(["failures", "turns", "failures", "turns"]);
  expect([await watch.turns(), await watch.failures()].map((list) => list.length)).toEqual([1, 1]);
});

test("a turn that another process can resume counts as ended once its end is stored, however long that takes", async () => {
  const { open, push } = openWatches();
  const back = Promise.withResolvers<void>();
  const watch = open("first", async (...given) => {
    await back.promise;
    return push(...given);
  });
  const fence = { key: "lane", value: "1", check: async () => {} };
  const endOnce = (right: Right) => watch.begin({ ...turn, askedAt: 0, attempts: 1 }, right).end({ ...end, note: "" });
  let isOver = false;
  const shared = endOnce(withFence(NO_RIGHT, fence)).then(() => (isOver = true));
  // Twice the wait for a turn whose end no other process would report.
  await endOnce(NO_RIGHT);
  await endOnce(NO_RIGHT);
  expect(isOver).toBe(false);
  back.resolve();
  await shared;
  expect(await watch.failures()).toHaveLength(1);
});

test("a turn that waited for approval is announced once, when it ends", async () => {
  const watch = openWatches().open("first");
  const report = async (turnId: string, number: number, outcome: string) =>
    watch.begin({ ...turn, turnId, askedAt: 0, attempts: 1 }, NO_RIGHT).end({ ...end, number, outcome, note: "" });
  await report("turn", 1, "waiting");
  await report("turn", 2, "complete");
  await report("other", 1, "waiting");
  const told = (await watch.turns()).map(({ turnId, outcome }) => `${turnId} ${outcome}`);
  expect(told).toEqual(["other waiting", "turn complete"]);
});
