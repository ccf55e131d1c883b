import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Fence, FencedError, withFence } from "../../src/concurrency/fence.ts";
import { createStores } from "../../src/store/keyv.ts";
import { StoreError } from "../../src/store/outage.ts";
import { silent } from "../support/log.ts";
import { isRedisMissing, type RedisServer, startRedis } from "../support/redis.ts";

describe.skipIf(isRedisMissing)("a store that processes share (needs redis-server)", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  function open() {
    const stores = createStores({ redisUrl: redis.url, database: new DatabaseSync(":memory:"), log: silent });
    onTestFinished(stores.close);
    return { ...stores, keyv: stores.open("trial") };
  }

  test("takes nothing under a fence that has fallen, be it one key or many", async () => {
    const { keyv, shared } = open();
    const fence: Fence = { key: "owner", value: "1", check: async () => {} };
    await shared?.run(() => shared.client.set("owner", "1"));
    await withFence(fence, async () => {
      await keyv.set("a", "mine", 60_000);
      await keyv.setMany([{ key: "b", value: "mine" }]);
      expect(await keyv.delete("b")).toBe(true);
    });
    await shared?.run(() => shared.client.set("owner", "2"));
    const writes: Array<() => Promise<unknown>> = [
      () => keyv.set("a", "stale"),
      () => keyv.setMany([{ key: "a", value: "stale" }]),
      () => keyv.delete("a"),
      () => keyv.delete(["a"]),
    ];
    for (const write of writes) await expect(withFence(fence, write)).rejects.toThrow(FencedError);
    expect(await keyv.get("a")).toBe("mine");
    expect(await withFence(fence, () => keyv.get("a"))).toBe("mine");
  });

  test("tells that a turn took too long as an outage, and only the end of the work itself as that", async () => {
    const { inTurn, keyv, shared } = open();
    const beLate = async () => {
      for await (const keys of shared?.client.scanIterator({ MATCH: "*:turn:*" }) ?? []) await shared?.client.del(keys);
      await keyv.set("late", "mine");
    };
    const work = (check: Fence["check"]) => withFence({ key: "work", value: "1", check }, () => inTurn("two", beLate));
    await shared?.run(() => shared.client.set("work", "1"));
    await expect(work(async () => {})).rejects.toThrow(StoreError);
    await expect(work(() => Promise.reject(new FencedError("another's")))).rejects.toThrow(FencedError);
    expect(await keyv.get("late")).toBeUndefined();
  });

  test("keeps every change that is made in turn, whoever makes it", async () => {
    const processes = [open(), open(), open()];
    const changes = Array.from({ length: 60 }, (_, index) => {
      const { inTurn, keyv } = processes[index % processes.length] ?? open();
      return inTurn("one", async () => keyv.set("list", [...((await keyv.get<number[]>("list")) ?? []), index]));
    });
    await Promise.all(changes);
    expect(await processes[0]?.keyv.get<number[]>("list")).toHaveLength(60);
  });
});
