import { describe, expect, onTestFinished, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { isRedisMissing } from "../../lab/support/redis.ts";
import { createProcesses, type ProcessReport } from "../../src/insight/processes.ts";
import { createRedisInsight } from "../../src/insight/redis-insight.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createRedisStore } from "../../src/store/redis.ts";
import { createListeningClient } from "../../src/store/redis-connection.ts";
import { createRedisCounters } from "../../src/store/redis-counters.ts";
import { createSharedParts } from "../../src/store/redis-shares.ts";
import { eventually } from "../support/eventually.ts";
import { GARBAGE } from "../support/garbage.ts";
import { shareRedis } from "../support/shared-redis.ts";

describe.skipIf(isRedisMissing)("unreadable data in a shared store (needs redis-server)", () => {
  const shared = shareRedis();

  test("a client reconnects and subscribes again after its listener threw", async () => {
    const listening = createListeningClient(shared.connection);
    await listening.connect();
    onTestFinished(() => listening.destroy());
    const heard: string[] = [];
    await listening.subscribe("test:channel", (text) => {
      heard.push(text);
      if (text === "bad") throw new Error("cannot be handled");
    });
    const id = async () => {
      const clients = await shared.connection.client.clientList();
      return clients.find(({ sub }) => sub === 1)?.id;
    };
    const before = await id();
    await shared.connection.client.publish("test:channel", "bad");
    await eventually(async () => [undefined, before].includes(await id())).toBe(false);
    await shared.connection.client.publish("test:channel", "good");
    await eventually(() => heard).toEqual(["bad", "good"]);
  });

  test("unreadable counts stop neither counting nor quotas", async () => {
    const { client } = shared.connection;
    const counters = createRedisCounters(shared.connection, NO_RIGHT);
    const place = "palaver:{counters}:";
    const counted = (row: string, tokens: number) => ({ row, counts: { tokens }, ttlMs: 60_000 });
    await client.set(`${place}row:all`, JSON.stringify({ tokens: "many", reserved: {} }));
    await client.set(`${place}row:text`, "not JSON");
    await client.zAdd(`${place}rows`, { score: 0, value: "all" });
    const bound = { row: "all", counts: ["tokens", "reserved"], by: 1, most: 10, unless: "lifted" };
    const reservation = { id: "1", bounds: [bound], additions: [counted("all", 1)] };
    expect(await counters.reserve({ ...reservation, bounds: [{ ...bound, by: 11 }] })).toEqual([10]);
    expect(await counters.reserve(reservation)).toBeUndefined();
    expect(await counters.read(["text"])).toEqual(new Map([["text", {}]]));
    expect(await counters.add("once", [counted("all", 3), counted("text", 3)])).toBe(true);
    expect(await counters.list("")).toEqual([
      ["all", { tokens: 4 }],
      ["text", { tokens: 3 }],
    ]);
  });

  test("a key of another type blocks neither texts nor turn records nor the index of counts", async () => {
    const { client } = shared.connection;
    const [list, rows] = ["palaver:insight:list:turns", "palaver:{counters}:rows"];
    await client.rPush("palaver:trial:key", "x");
    for (const key of [list, rows]) await client.set(key, "x");
    const { storeUnder, close } = createRedisStore(shared.redis.url, silent);
    const store = storeUnder(NO_RIGHT);
    onTestFinished(close);
    expect(await store.get("palaver:trial:key")).toBeUndefined();
    const insight = createRedisInsight(shared.connection);
    await insight.push("turns", "story", 10);
    expect(await insight.list("turns")).toEqual(["story"]);
    const counters = createRedisCounters(shared.connection, NO_RIGHT);
    await counters.add("once", [{ row: "all", counts: { tokens: 1 }, ttlMs: 60_000 }]);
    expect(await counters.list("")).toEqual([["all", { tokens: 1 }]]);
  });

  test("the processes replace unreadable shares", async () => {
    for (const text of GARBAGE) {
      await shared.connection.client.set("test:shards:1", text);
      const shares = createSharedParts(shared.connection, "test:shards", Date.now, silent);
      const share = await shares.claim({ count: 1, inUse: [], atOnce: 1, isLeaving: false });
      expect(share.own).toEqual([0]);
    }
  });

  test("an unreadable report of one process does not hide the others", async () => {
    const { client } = shared.connection;
    const key = "palaver:insight:processes";
    for (const [index, text] of GARBAGE.entries()) {
      await client.hSet(key, [`a ${index}`, text, `b ${index}`, `${Date.now() + 60_000} ${text}`]);
    }
    const own = { v: 1, name: "one", role: "all", version: "1", gateway: "", platforms: {}, isStoreReachable: true };
    const numbers = { startedAt: 1, at: 1, memoryBytes: 1, loopLagMs: 1, places: 1, active: 0, waiting: 0 };
    const describeOne = (): ProcessReport => ({ ...own, v: 1, ...numbers, budgets: [], pausedModels: 0, running: [] });
    const store = createRedisInsight(shared.connection);
    const processes = createProcesses({ store, id: "one", describe: describeOne, isAlone: false, log: silent });
    expect((await processes.read()).map(({ name }) => name)).toEqual(["one"]);
  });
});
