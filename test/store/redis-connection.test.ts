import { describe, expect, onTestFinished, test } from "vitest";
import { recordingLog, silent } from "../../lab/support/log.ts";
import { isRedisMissing, startRedis } from "../../lab/support/redis.ts";
import { StoreError } from "../../src/store/outage.ts";
import { createRedisStore } from "../../src/store/redis.ts";
import { connectToRedis, createListeningClient } from "../../src/store/redis-connection.ts";
import { startDoor } from "../support/door.ts";
import { eventually } from "../support/eventually.ts";

describe.skipIf(isRedisMissing)("a connection to Redis (needs redis-server)", () => {
  // Work that waits for the holders of lanes must learn each time that Redis is back.
  test("the first connection counts as a return only if Redis was away at the start", async () => {
    const redis = await startRedis();
    onTestFinished(redis.stop);
    const early = connectToRedis(redis.url, silent);
    onTestFinished(early.close);
    await eventually(() => early.client.isReady).toBe(true);
    expect(early.backForMs()).toBe(Infinity);

    await redis.kill();
    const late = connectToRedis(redis.url, silent);
    onTestFinished(late.close);
    const refused = Promise.withResolvers<void>();
    late.client.once("error", () => refused.resolve());
    await refused.promise;
    await redis.restart();
    await eventually(() => late.client.isReady).toBe(true);
    expect(late.backForMs()).toBeLessThan(Infinity);
  });

  test("a client that gets no answer reconnects, and the connection of the other client stays", async () => {
    const redis = await startRedis();
    onTestFinished(redis.stop);
    const connection = connectToRedis(redis.url, silent);
    onTestFinished(connection.close);
    const other = createListeningClient(connection);
    await other.connect();
    onTestFinished(() => other.destroy());
    const id = await connection.run(() => connection.client.clientId());
    // Redis handles no other command on this connection until the blocking read ends.
    other.blPop("nothing", 0).catch(() => {});
    await expect(connection.run(() => other.ping(), other)).rejects.toThrow("did not answer");
    expect(await connection.run(() => other.ping(), other)).toBe("PONG");
    expect(await connection.run(() => connection.client.clientId())).toBe(id);
  });

  /** Two servers, and an address that leads to the first one. */
  async function startPair() {
    const [first, second] = [await startRedis(), await startRedis()];
    const door = await startDoor(first.url);
    const toFirst = connectToRedis(first.url, silent);
    onTestFinished(async () => {
      await toFirst.close();
      door.remove();
      await Promise.all([first.stop(), second.stop()]);
    });
    const demote = () => toFirst.run(() => toFirst.client.replicaOf("127.0.0.1", Number(new URL(second.url).port)));
    return { second, door, url: door.origin.replace("http:", "redis:"), toFirst, demote };
  }

  test("all clients of a server that became a replica move to the primary at its address", async () => {
    const { second, door, url, demote } = await startPair();
    const connection = connectToRedis(url, silent);
    onTestFinished(connection.close);
    const listening = createListeningClient(connection);
    await listening.connect();
    onTestFinished(() => listening.destroy());
    const heard: string[] = [];
    await listening.subscribe("test:channel", (text) => heard.push(text));
    await connection.run(() => connection.client.set("key", "before"));

    await demote();
    door.leadTo(second.url);
    await connection.run(() => connection.client.eval("return redis.call('SET', KEYS[1], 'after')", { keys: ["key"] }));
    const toSecond = connectToRedis(second.url, silent);
    onTestFinished(toSecond.close);
    expect(await toSecond.run(() => toSecond.client.get("key"))).toBe("after");
    await eventually(() => toSecond.client.pubSubNumSub("test:channel")).toEqual({ "test:channel": 1 });
    await toSecond.client.publish("test:channel", "hello");
    await eventually(() => heard).toEqual(["hello"]);
  });

  test("while its address leads to a replica, the connection logs one outage, and later the end of that outage", async () => {
    const { url, toFirst, demote } = await startPair();
    const { log, lines } = recordingLog();
    const { shared, isReachable, close } = createRedisStore(url, log);
    onTestFinished(close);
    await eventually(isReachable).toBe(true);
    await demote();
    expect(await isReachable()).toBe(false);
    await expect(shared?.run(async () => "read")).rejects.toThrow(StoreError);
    await toFirst.run(() => toFirst.client.sendCommand(["REPLICAOF", "NO", "ONE"]));
    await eventually(isReachable).toBe(true);
    expect(lines.map(({ msg, reason }) => [msg, reason])).toEqual([
      ["Redis is not reachable; retrying", "it is a replica, which accepts no writes"],
      ["Redis is reachable again", undefined],
    ]);
  });
});
