import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ada, ben, command, message } from "../../lab/support/events.ts";
import { isRedisMissing, type RedisServer, startRedis } from "../../lab/support/redis.ts";
import { openRedisQueue } from "../../lab/support/redis-queue.ts";
import type { InboundEvent } from "../../src/port/events.ts";
import { FencedError, type Work } from "../../src/port/right.ts";
import { PART_KEYS, partitionOf } from "../../src/queue/partition.ts";
import { callPlatform } from "../../src/reply/platform-call.ts";
import type { RedisConnection } from "../../src/store/redis-connection.ts";
import { eventually } from "../support/eventually.ts";
import { heldWorker, type QueueWorld, queueContract, quickWorker, startHeld } from "../support/queue-contract.ts";
import { connectWell, countCommands } from "../support/shared-redis.ts";

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
      open: (options = {}) => {
        const queue = openRedisQueue({ connection, ...options });
        opened.push(queue);
        return queue;
      },
    };
  }

  queueContract(startWorld);

  test("erasing an author on Redis removes their waiting events and keeps anonymous claims", async () => {
    const queue = startWorld().open();
    const [mine, other] = [message("secret of Ada"), message("of Ben", { author: ben })];
    for (const event of [mine, other]) await queue.accept(event);
    await queue.forget("test", ada.id, "none");
    const key = PART_KEYS.journal(partitionOf("test:a"));
    const stored = await connection.run(() => connection.client.xRange(key, "-", "+"));
    expect(stored.map(({ message: { e = "" } }) => JSON.parse(e) as unknown)).toMatchObject([{ text: "of Ben" }]);
    expect(await queue.accept(mine)).toBe(false);
  });

  test("the queue sends no event to Redis twice, such as Slack's second delivery of a mention", async () => {
    const world = startWorld();
    const [queue, event] = [world.open(), message("hello")];
    expect(await queue.accept(event)).toBe(true);
    const again = async () => expect(await queue.accept(event)).toBe(false);
    const commands = await countCommands(connection.client, again);
    for (const name of ["xadd", "evalsha"]) expect(commands).not.toHaveProperty(name);
    expect(await world.open().accept(event)).toBe(false);
  });

  test("the queue closes within its reserve of the grace period although Redis is silent", async () => {
    const queue = startWorld().open();
    const { untilBegun } = startHeld(queue);
    await queue.accept(message("one"));
    await untilBegun(1);
    redis.freeze();
    try {
      expect(await Promise.race([queue.close(0).then(() => "ended"), sleep(2_500)])).toBe("ended");
    } finally {
      redis.thaw();
    }
  });

  test("work that the queue no longer waits for writes nothing, because other processes can run it", async () => {
    const queue = startWorld().open();
    const { worker } = heldWorker();
    const [begun, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let calling: Promise<unknown> = Promise.resolve("not called");
    const work = async (events: InboundEvent[], { right }: Work) => {
      calling = closed.promise.then(() => callPlatform(right, async () => "written"));
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

  test("every process can find the conversation of a message while the message waits, and no longer", async () => {
    const world = startWorld();
    const [one, other] = [world.open(), world.open()];
    const event = message("hello");
    await one.accept(event);
    expect(await other.conversationOf(event.messageId)).toBe(event.conversationId);
    other.start(quickWorker(() => {}));
    await eventually(() => one.conversationOf(event.messageId)).toBeUndefined();
  });

  test("the limit of one person's image turns applies across all processes", async () => {
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
