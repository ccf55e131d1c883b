import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createProcesses, type ProcessReport } from "../../src/insight/processes.ts";
import { createRedisInsight } from "../../src/insight/redis-insight.ts";
import { createRedisStore } from "../../src/store/redis.ts";
import { createBoard } from "../../src/store/redis-board.ts";
import { createListeningClient } from "../../src/store/redis-connection.ts";
import { createRedisCounters } from "../../src/store/redis-counters.ts";
import { createSharedParts } from "../../src/store/redis-shares.ts";
import { eventually } from "../support/eventually.ts";
import { GARBAGE } from "../support/garbage.ts";
import { silent } from "../support/log.ts";
import { isRedisMissing } from "../support/redis.ts";
import { shareRedis } from "../support/shared-redis.ts";

describe.skipIf(isRedisMissing)("what a process cannot read in a shared store (needs redis-server)", () => {
  const shared = shareRedis();

  test("an unreadable announcement hides neither the earlier ones nor those that follow", async () => {
    const { client } = shared.connection;
    const open = (by: string) => {
      const common = { connection: shared.connection, schema: z.enum(["wait"]), place: "test:board" };
      const board = createBoard({ ...common, by, now: Date.now, log: silent });
      onTestFinished(() => board.close());
      return board;
    };
    const [one, other] = [open("one"), open("other")];
    for (const [index, text] of GARBAGE.entries()) await client.hSet("test:board", `0 ${index}`, text);
    one.tell("earlier", "wait", 60_000);
    await eventually(() => client.hExists("test:board", "earlier")).toBe(1);
    const heard: string[] = [];
    await other.listen((key) => heard.push(key));
    for (const text of GARBAGE) await client.publish("test:board", text);
    one.tell("later", "wait", 60_000);
    await eventually(() => heard).toEqual(["earlier", "later"]);
  });

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

  test("unreadable counts and holds stop neither the counting nor the quotas", async () => {
    const { client } = shared.connection;
    const counters = createRedisCounters(shared.connection, Date.now);
    const place = "palaver:{counters}:";
    const counted = (row: string, tokens: number) => ({ row, counts: { tokens }, ttlMs: 60_000 });
    const toHold = (id: string) => {
      const bounds = [{ row: "all", count: "tokens", by: 1, most: 10 }];
      return { id, token: "t", bounds, loss: [counted("all", 1)], forMs: 60_000 };
    };
    const odd = ['{"id":"14","bounds":[{}],"loss":7}', '{"id":"15","bounds":[7],"loss":[{"row":1}]}', '{"id":"16"}'];
    for (const [index, text] of [...GARBAGE, ...odd].entries()) {
      await client.set(`${place}hold:${index + 1}`, text);
      await client.zAdd(`${place}holds`, { score: 1, value: String(index + 1) });
    }
    await client.hSet(`${place}row:all`, "tokens", "many");
    await client.hSet(`${place}held:all`, "tokens", "many");
    await client.set(`${place}row:text`, "not a hash");
    expect(await counters.hold(toHold("1"))).toEqual([10]);
    expect(await counters.countHolds()).toBe(1);
    expect(await counters.settle("1", "t", [counted("all", 2), counted("text", 3)])).toBe(true);
    expect(await counters.add("once", [counted("all", 2)])).toBe(true);
    expect(await counters.list("")).toEqual([
      ["all", { tokens: 4 }],
      ["text", { tokens: 3 }],
    ]);
  });

  test("a key of another type blocks neither texts nor stories of turns nor the indexes of counts and holds", async () => {
    const { client } = shared.connection;
    const [list, rows, holds] = ["palaver:insight:list:turns", "palaver:{counters}:rows", "palaver:{counters}:holds"];
    await client.rPush("palaver:trial:key", "x");
    for (const key of [list, rows, holds]) await client.set(key, "x");
    const { store, close } = createRedisStore(shared.redis.url, silent);
    onTestFinished(close);
    expect(await store.get("palaver:trial:key")).toBeUndefined();
    const insight = createRedisInsight(shared.connection);
    await insight.push("turns", "story", 10);
    expect(await insight.list("turns")).toEqual(["story"]);
    const counters = createRedisCounters(shared.connection, Date.now);
    await counters.add("once", [{ row: "all", counts: { tokens: 1 }, ttlMs: 60_000 }]);
    expect(await counters.list("")).toEqual([["all", { tokens: 1 }]]);
    expect(await counters.countHolds()).toBe(0);
  });

  test("unreadable shares are replaced", async () => {
    for (const text of GARBAGE) {
      await shared.connection.client.set("test:shards:1", text);
      const shares = createSharedParts(shared.connection, "test:shards", Date.now, silent);
      const share = await shares.claim({ count: 1, inUse: [], atOnce: 1, isLeaving: false });
      expect(share.own).toEqual([0]);
    }
  });

  test("an unreadable report of a process hides none of the others", async () => {
    const { client } = shared.connection;
    const key = "palaver:insight:processes";
    for (const [index, text] of GARBAGE.entries()) {
      await client.hSet(key, [`a ${index}`, text, `b ${index}`, `${Date.now() + 60_000} ${text}`]);
    }
    const own = { v: 1, name: "one", role: "all", version: "1", gateway: "", platforms: {}, isStoreReachable: true };
    const numbers = { startedAt: 1, at: 1, memoryBytes: 1, loopLagMs: 1, places: 1, active: 0, waiting: 0 };
    const describeOne = (): ProcessReport => ({ ...own, v: 1, ...numbers, budgets: [], breakers: [], running: [] });
    const store = createRedisInsight(shared.connection);
    const processes = createProcesses({ store, id: "one", describe: describeOne, isAlone: false, log: silent });
    expect((await processes.read()).map(({ name }) => name)).toEqual(["one"]);
  });
});
