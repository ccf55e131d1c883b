import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { createTrends } from "../../src/insight/trends.ts";
import { type Counters, createSqliteCounters } from "../../src/store/counters.ts";

const NOON = Date.UTC(2026, 10, 22, 12);
const HOUR_MS = 3_600_000;

function openTrends(wrap: (counters: Counters) => Counters = (counters) => counters) {
  let at = NOON;
  const database = new DatabaseSync(":memory:");
  const counters = createSqliteCounters(database, () => at);
  const open = () => createTrends({ counters: wrap(counters), now: () => at, log: silent });
  return { open, database, pass: (ms: number) => void (at += ms) };
}

const sum = (numbers: readonly number[] = []) => numbers.reduce((total, number) => total + number, 0);

describe("the trends of several processes", () => {
  test("the counts of two processes add up in each range", async () => {
    const { open, pass } = openTrends();
    const [one, other] = [open(), open()];
    one.count("turns", "complete");
    other.count("turns", "complete");
    other.measure("lag", "test", 100);
    one.measure("lag", "test", 900);
    await one.end("a", { counts: [["turns", "complete"]], tokens: { prompt: 10, completion: 5 } });
    await Promise.all([one.flush(), other.flush()]);
    pass(24 * HOUR_MS);
    one.count("turns", "failed");
    await one.flush();

    const turns = async (range: Parameters<typeof one.read>[0]) => (await one.read(range)).counts.turns;
    expect(sum((await turns("hour"))["complete"])).toBe(0);
    expect(sum((await turns("week"))["complete"])).toBe(3);
    const month = await one.read("month");
    expect(month.counts.turns["complete"]?.slice(-2)).toEqual([3, 0]);
    expect(month.counts.turns["failed"]?.slice(-2)).toEqual([0, 1]);
    expect(sum(month.tokens.prompt)).toBe(10);
    expect(month.times.lag["all"]).toMatchObject({ count: 2 });
    expect(month.times.lag["all"]?.all.p99).toBeCloseTo(900, -2);
  });

  test("counts that wait for the store never fill the memory, because the trends drop the oldest", async () => {
    const state = { isAway: true };
    const { open } = openTrends((counters) => ({
      ...counters,
      add: (once, additions) => (state.isAway ? Promise.reject(new Error("away")) : counters.add(once, additions)),
    }));
    const trends = open();
    for (let index = 0; index < 1_200; index++) {
      trends.count("turns", "complete");
      await trends.flush();
    }
    state.isAway = false;
    await trends.flush();
    expect(sum((await trends.read("hour")).counts.turns["complete"])).toBe(1_000);
  });

  test("the trends repeat counts that the store did not confirm, and each of these counts once", async () => {
    let isAway = true;
    const { open } = openTrends((counters) => ({
      ...counters,
      async add(once, additions) {
        // The store counted it, but its response was lost.
        const isNew = await counters.add(once, additions);
        if (isAway) throw new Error("away");
        return isNew;
      },
    }));
    const trends = open();
    trends.count("turns", "complete");
    await trends.flush();
    trends.count("turns", "complete");
    isAway = false;
    await trends.flush();
    expect(sum((await trends.read("hour")).counts.turns["complete"])).toBe(2);
  });

  test("the trends announce an ended turn as soon as it is stored, and not before", async () => {
    let tries = 0;
    const { open } = openTrends((counters) => ({
      ...counters,
      async add(once, additions) {
        if (++tries === 1) throw new Error("away");
        return counters.add(once, additions);
      },
    }));
    const trends = open();
    expect(await trends.end("t:1", { counts: [["turns", "complete"]] })).toBe(true);
    expect(sum((await trends.read("hour")).counts.turns["complete"])).toBe(1);
  });

  test("the trends count an ended turn once, even if several processes report it", async () => {
    const { open } = openTrends();
    const [one, other] = [open(), open()];
    const told = [];
    for (const trends of [one, other, one]) {
      told.push(
        await trends.end("t:1", {
          counts: [
            ["turns", "complete"],
            ["tools", "search"],
            ["tools", "search"],
          ],
        }),
      );
    }
    told.push(await other.end("t:2", { counts: [["turns", "failed"]] }));
    expect(told).toEqual([true, false, false, true]);
    const { turns, tools } = (await one.read("hour")).counts;
    expect([turns["complete"], turns["failed"], tools["search"]].map(sum)).toEqual([1, 1, 2]);
  });

  test("the storage for 90 days of counts is bounded, however many names there are", async () => {
    const { open, database, pass } = openTrends();
    const trends = open();
    for (let hour = 0; hour < 91 * 24; hour++) {
      for (let n = 0; n < 5; n++) {
        trends.count("tools", `kind ${hour * 5 + n}`);
        trends.measure("firstToken", "test", 200 * 2 ** n);
        trends.measure("tool", `tool ${hour * 5 + n}`, 50);
      }
      await trends.flush();
      pass(HOUR_MS);
    }
    const rows = Number(database.prepare("SELECT count(*) AS rows FROM counted").get()?.["rows"]);
    expect(rows).toBeLessThan(40_000);
    expect(Object.keys((await trends.read("quarter")).counts.tools).length).toBeLessThanOrEqual(101);
  });
});
