import { describe, expect, onTestFinished, test } from "vitest";
import { createBells } from "../../../src/queue/redis/bells.ts";
import { connectToRedis } from "../../../src/store/redis-connection.ts";
import { eventually } from "../../support/eventually.ts";
import { silent } from "../../support/log.ts";
import { isRedisMissing, startRedis } from "../../support/redis.ts";

describe.skipIf(isRedisMissing)("bells (need redis-server)", () => {
  test("ring on after Redis was lost, also where the bells of a process that is gone were taken down", async () => {
    const redis = await startRedis();
    onTestFinished(redis.stop);
    const connection = connectToRedis(redis.url, silent);
    onTestFinished(connection.close);
    const bells = createBells(connection, "one", silent);
    onTestFinished(bells.close);
    const heard: string[] = [];
    await bells.hear(async ({ laneId }) => void heard.push(laneId), 1);
    await bells.ring("left", "gone");
    expect(await bells.leftBy("gone")).toEqual(["left"]);
    await redis.kill();
    await redis.restart();
    // Where an error of the connection had nobody to take it, this process would be dead.
    const ring = () => bells.ring("next").catch(() => {});
    await eventually(() => ring().then(() => heard.includes("next"))).toBe(true);
  });
});
