import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { withFence } from "../../src/concurrency/fence.ts";
import { createSqliteInsight } from "../../src/insight/sqlite-insight.ts";
import { createTrends } from "../../src/insight/trends.ts";
import { createTurnWatch } from "../../src/insight/turn-watch.ts";
import { createSqliteCounters } from "../../src/store/counters.ts";
import { StoreError } from "../../src/store/outage.ts";
import { eventually } from "../support/eventually.ts";
import { silent } from "../support/log.ts";

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

test("a failure whose process died while it wrote that down is among the failures once its turn is taken up", async () => {
  const { open, push } = openWatches();
  let pushes = 0;
  const died = Promise.withResolvers<void>();
  const first = open("first", (...given) => {
    if (pushes++ === 0) return push(...given);
    died.resolve();
    return new Promise(() => {});
  });
  void first.begin({ ...turn, askedAt: 0, attempts: 1 }).end({ ...end, note: "" });
  await died.promise;
  const second = open("second");
  await second.makeUp({ ...turn, ...end, at: 1 });
  for (const list of [await second.turns(), await second.failures()]) {
    expect(list.map(({ turnId, outcome }) => [turnId, outcome])).toEqual([["turn", "interrupted"]]);
  }
});

test("a failure that ends while the store is started anew is among the failures when it is back", async () => {
  const { open, push } = openWatches();
  let failures = 3;
  const watch = open("first", async (list, ...given) => {
    if (list === "failures" && failures-- > 0) throw new StoreError("away");
    return push(list, ...given);
  });
  await watch.begin({ ...turn, askedAt: 0, attempts: 1 }).end({ ...end, note: "" });
  await eventually(async () => (await watch.failures()).map(({ turnId }) => turnId)).toEqual(["turn"]);
});

test("a failure is tried again in all its lists where one of them did not take it, and told once", async () => {
  const { open, push } = openWatches();
  const pushed: string[] = [];
  const watch = open("first", async (list, ...given) => {
    pushed.push(list);
    if (pushed.length === 2) throw new StoreError("away");
    return push(list, ...given);
  });
  await watch.begin({ ...turn, askedAt: 0, attempts: 1 }).end({ ...end, note: "" });
  expect(pushed).toEqual(["failures", "turns", "failures", "turns"]);
  expect([await watch.turns(), await watch.failures()].map((list) => list.length)).toEqual([1, 1]);
});

test("the end of a turn that others may take over is over once it is kept, however long that takes", async () => {
  const { open, push } = openWatches();
  const back = Promise.withResolvers<void>();
  const watch = open("first", async (...given) => {
    await back.promise;
    return push(...given);
  });
  const fence = { key: "lane", value: "1", check: async () => {} };
  const endOnce = (isShared: boolean) => {
    const ended = () => watch.begin({ ...turn, askedAt: 0, attempts: 1 }).end({ ...end, note: "" });
    return isShared ? withFence(fence, ended) : ended();
  };
  let isOver = false;
  const shared = endOnce(true).then(() => (isOver = true));
  // Twice as long as one that nobody else would tell of.
  await endOnce(false);
  await endOnce(false);
  expect(isOver).toBe(false);
  back.resolve();
  await shared;
  expect(await watch.failures()).toHaveLength(1);
});
