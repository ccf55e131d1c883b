import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { FencedError } from "../../../src/concurrency/fence.ts";
import type { InboundEvent } from "../../../src/port/events.ts";
import { KEYS } from "../../../src/queue/redis/keys.ts";
import { createRedisQueue } from "../../../src/queue/redis/redis-queue.ts";
import { callPlatform } from "../../../src/reply/platform-call.ts";
import type { RedisConnection } from "../../../src/store/redis-connection.ts";
import { ada, ben, command, message } from "../../support/events.ts";
import { eventually } from "../../support/eventually.ts";
import { silent } from "../../support/log.ts";
import { heldWorker, type QueueWorld, queueContract, quickWorker } from "../../support/queue-contract.ts";
import { isRedisMissing, type RedisServer, startRedis } from "../../support/redis.ts";
import { connectWell } from "../../support/shared-redis.ts";

describe.skipIf(isRedisMissing)("the queue on Redis (needs redis-server)", () => {
  let redis: RedisServer;
  let connection: RedisConnection;
  beforeAll(async () => {
    redis = await startRedis();
  });
  beforeEach(async () => {
    connection = await connectWell(redis.url);
  });
  afterAll(() => redis.stop());

  function startWorld(): QueueWorld {
    const opened: Array<{ close(graceMs: number): Promise<void> }> = [];
    onTestFinished(async () => {
      await Promise.all(opened.map((queue) => queue.close(0)));
      await connection.run(() => connection.client.flushAll());
      await connection.close();
    });
    return {
      open: ({ maxActive = 16, log = silent, cutMs = 5 } = {}) => {
        const queue = createRedisQueue({ connection, maxActive, log, now: Date.now, retryMs: [1, 4], cutMs });
        opened.push(queue);
        return queue;
      },
    };
  }

  queueContract(startWorld);

  test("erases one author's waiting events and keeps the claims, without the person", async () => {
    const queue = startWorld().open();
    const [mine, other] = [message("secret of Ada"), message("of Ben", { author: ben })];
    for (const event of [mine, other]) await queue.accept(event);
    await queue.forget("test", ada.id, "none");
    const stored = await connection.run(() => connection.client.lRange(KEYS.lane("test:a"), 0, -1));
    expect(stored.map((text) => JSON.parse(text) as unknown)).toMatchObject([{ text: "of Ben" }]);
    expect(await queue.accept(mine)).toBe(false);
  });

  test("ends though Redis is silent, well within what is kept of the grace for the end", async () => {
    const queue = startWorld().open();
    const { worker, untilBegun } = heldWorker();
    queue.start(worker);
    await queue.accept(message("one"));
    await untilBegun(1);
    redis.freeze();
    try {
      expect(await Promise.race([queue.close(0).then(() => "ended"), sleep(2_500)])).toBe("ended");
    } finally {
      redis.thaw();
    }
  });

  test("lets work that it waits for no more write nothing: others may do it by then", async () => {
    const queue = startWorld().open();
    const { worker } = heldWorker();
    const [begun, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let calling: Promise<unknown> = Promise.resolve("not called");
    const work = async (events: InboundEvent[]) => {
      calling = closed.promise.then(() => callPlatform(async () => "written"));
      calling.catch(() => {});
      begun.resolve();
      await calling;
      return events;
    };
    queue.start({ ...worker, work });
    await queue.accept(message("one"));
    await begun.promise;
    await queue.close(0);
    closed.resolve();
    await expect(calling).rejects.toThrow(FencedError);
  });

  test("knows the conversation of a message that waits, in every process, and no longer", async () => {
    const world = startWorld();
    const [one, other] = [world.open(), world.open()];
    const event = message("hello");
    await one.accept(event);
    expect(await other.conversationOf(event.messageId)).toBe(event.conversationId);
    other.start(quickWorker(() => {}));
    await eventually(() => one.conversationOf(event.messageId)).toBeUndefined();
  });

  test("counts the processes that only accept, which work on nothing, for as long as they are there", async () => {
    const world = startWorld();
    const [ingress, worker] = [world.open(), world.open()];
    const done: string[] = [];
    ingress.start(undefined);
    await eventually(() => ingress.processes()).toBe(1);
    worker.start(quickWorker((events) => void done.push(...events.map(({ key }) => key))));
    const event = message("hello");
    await ingress.accept(event);
    await eventually(() => done).toEqual([event.key]);
    await eventually(() => [ingress.processes(), worker.processes()]).toEqual([2, 2]);
    await ingress.close(0);
    await eventually(() => worker.processes()).toBe(1);
  });

  test("bounds what one person draws over all processes", async () => {
    const world = startWorld();
    const workers = [heldWorker(), heldWorker()];
    for (const { worker } of workers) world.open().start(worker);
    const ingress = world.open();
    for (let job = 1; job <= 4; job++) {
      const lane = { id: `drawing:${job}`, kind: "drawing" as const, workId: `${job}` };
      await ingress.accept({ ...command("imagine", "a fox"), lane });
    }
    const begun = () => workers.flatMap((held) => held.begun).length;
    await eventually(begun).toBe(2);
    workers.find((held) => held.ends.length > 0)?.ends[0]?.resolve();
    await eventually(begun).toBe(3);
  });
});
