import { createClient } from "@keyv/redis";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { isRedisMissing, type RedisServer, startRedis } from "../../lab/support/redis.ts";
import { makeDataDir, runService } from "../../lab/support/service.ts";
import { checkRedis, describeVersion } from "../../src/doctor/redis.ts";
import { noteGivenUp } from "../../src/queue/given-up.ts";

describe.skipIf(isRedisMissing)("checkRedis", () => {
  let redis: RedisServer;
  beforeAll(async () => void (redis = await startRedis()));
  afterAll(() => redis.stop());

  /** Changes settings of the server, and changes them to `then` when the test ends. */
  async function configure(settings: Record<string, string>, then: Record<string, string>): Promise<void> {
    const client = createClient({ url: redis.url });
    await client.connect();
    await client.configSet(settings);
    onTestFinished(async () => {
      await client.configSet(then);
      await client.close();
    });
  }

  test("checkRedis warns about a server that keeps nothing on disk", async () => {
    expect(await checkRedis(redis.url)).toEqual([
      { ok: true, what: expect.stringContaining("accepts writes") },
      {
        ok: false,
        what: expect.stringContaining("keeps nothing on disk"),
        fix: expect.stringContaining("appendonly"),
      },
      { ok: true, what: expect.stringContaining("evicts no keys") },
      { ok: true, what: expect.stringMatching(/^Redis \d+\.\d+\S* is new enough/) },
    ]);
  });

  test("checkRedis accepts a server that keeps every write, and leaves nothing behind", async () => {
    await configure({ appendonly: "yes" }, { appendonly: "no" });
    expect((await checkRedis(redis.url)).map(({ ok }) => ok)).toEqual([true, true, true, true]);
    const client = createClient({ url: redis.url });
    await client.connect();
    expect(await client.dbSize()).toBe(0);
    await client.close();
  });

  test.each([
    ["always", true, /every change to its disk \(appendonly\)\.$/],
    ["everysec", true, /the last second can be lost/],
    ["no", false, /appendfsync no.*accepted messages/],
  ])("checkRedis says what can be lost with appendfsync %s", async (appendfsync, ok, what) => {
    await configure({ appendonly: "yes", appendfsync }, { appendonly: "no", appendfsync: "everysec" });
    expect((await checkRedis(redis.url))[1]).toMatchObject({ ok, what: expect.stringMatching(what) });
  });

  test("checkRedis and the service at its start refuse a cluster with the same sentence", async () => {
    const cluster = await startRedis({ isCluster: true });
    onTestFinished(cluster.stop);
    const found = await checkRedis(cluster.url);
    expect(found).toEqual([{ ok: false, what: expect.stringContaining("Redis Cluster") }]);
    const { path, remove } = await makeDataDir();
    onTestFinished(remove);
    const { code, output } = await runService({ REDIS_URL: cluster.url, DATA_DIR: path, LOCAL_CHAT: "on" });
    expect(code).toBe(1);
    expect(output).toContain(found[0]?.what);
  });

  test.each([
    ["5.0.14", false],
    ["6.0.16", false],
    ["6.2.0", true],
    ["7.2.4", true],
    ["10.0.1", true],
  ])("describeVersion rates Redis %s", (version, ok) => expect(describeVersion(version).ok).toBe(ok));

  test("checkRedis says that snapshots can lose the last minutes", async () => {
    await configure({ save: "3600 1" }, { save: "" });
    expect((await checkRedis(redis.url))[1]).toEqual({ ok: true, what: expect.stringContaining("last minutes") });
  });

  test("checkRedis warns about a server that evicts conversations when it is full", async () => {
    const policy = { "maxmemory-policy": "allkeys-lru", maxmemory: "100mb" };
    await configure(policy, { "maxmemory-policy": "noeviction", maxmemory: "0" });
    expect((await checkRedis(redis.url))[2]).toEqual({
      ok: false,
      what: expect.stringContaining("allkeys-lru"),
      fix: expect.stringContaining("noeviction"),
    });
  });

  test("checkRedis lists the events that the queue gave up on", async () => {
    const client = createClient({ url: redis.url });
    await client.connect();
    const reason = "6 processes died during this work.";
    await noteGivenUp(client, { key: "test:1", kind: "message", laneId: "test:a", at: 0, reason });
    const found = await checkRedis(redis.url);
    expect(found.at(-1)).toMatchObject({ ok: false, what: expect.stringContaining(reason) });
    await client.flushAll();
    await client.close();
  });

  test("checkRedis quotes a server that refuses", async () => {
    await configure({ requirepass: "canary-word" }, { requirepass: "" });
    const [found] = await checkRedis(redis.url);
    expect(found).toMatchObject({ ok: false, what: expect.stringMatching(/NOAUTH/) });
    const [wrong] = await checkRedis(redis.url.replace("redis://", "redis://:canary-wrong@"));
    expect(wrong).toMatchObject({ ok: false, what: expect.stringMatching(/WRONGPASS.*Check/) });
    expect(wrong?.what).not.toContain("canary");
  });

  test("checkRedis reports an unreachable server in one sentence", async () => {
    const found = await checkRedis("redis://127.0.0.1:1");
    expect(found).toEqual([
      { ok: false, what: expect.stringMatching(/^Redis at 127\.0\.0\.1:1 did not answer.*ECONNREFUSED.*REDIS_URL/) },
    ]);
  });
});
