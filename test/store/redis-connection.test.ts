import { describe, expect, onTestFinished, test } from "vitest";
import { connectToRedis, createListeningClient } from "../../src/store/redis-connection.ts";
import { eventually } from "../support/eventually.ts";
import { silent } from "../support/log.ts";
import { isRedisMissing, startRedis } from "../support/redis.ts";

describe.skipIf(isRedisMissing)("a connection to Redis (needs redis-server)", () => {
  // Holders of lanes that have yet to come back are waited for by those who know of a return.
  test("counts its first time as a return where Redis was away at the start, and only there", async () => {
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

  test("is left alone where another client is silent, which is connected anew", async () => {
    const redis = await startRedis();
    onTestFinished(redis.stop);
    const connection = connectToRedis(redis.url, silent);
    onTestFinished(connection.close);
    const other = createListeningClient(connection);
    await other.connect();
    onTestFinished(() => other.destroy());
    const id = await connection.run(() => connection.client.clientId());
    // Redis answers nothing more there before this ends.
    other.blPop("nothing", 0).catch(() => {});
    await expect(connection.run(() => other.ping(), other)).rejects.toThrow("did not answer");
    expect(await connection.run(() => other.ping(), other)).toBe("PONG");
    expect(await connection.run(() => connection.client.clientId())).toBe(id);
  });
});
