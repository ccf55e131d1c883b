import { afterEach, describe, expect, test } from "vitest";
import { message } from "../../lab/support/events.ts";
import { silent } from "../../lab/support/log.ts";
import { isRedisMissing } from "../../lab/support/redis.ts";
import { openRedisQueue } from "../../lab/support/redis-queue.ts";
import type { InboundEvent } from "../../src/port/events.ts";
import type { Queue } from "../../src/queue/queue.ts";
import { StoreError } from "../../src/store/outage.ts";
import { connectToRedis, type RedisConnection } from "../../src/store/redis-connection.ts";
import { eventually } from "../support/eventually.ts";
import { shareRedis } from "../support/shared-redis.ts";

const MESSAGES = 1_000;

/** Delivers like a platform. An event that is not accepted, for example on a slow machine, is delivered again. */
async function deliver(queue: Queue, event: InboundEvent): Promise<boolean> {
  for (;;) {
    try {
      return await queue.accept(event);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
    }
  }
}

describe.skipIf(isRedisMissing)("one conversation over four workers (needs redis-server)", () => {
  const shared = shareRedis();
  const open: Array<{ queue: Queue; connection: RedisConnection }> = [];
  afterEach(async () => {
    const all = open.splice(0);
    await Promise.all(all.map(({ queue }) => queue.close(0)));
    await Promise.all(all.map(({ connection }) => connection.close()));
  });

  function openOne(): Queue {
    const connection = connectToRedis(shared.redis.url, silent);
    const queue = openRedisQueue({ connection });
    open.push({ queue, connection });
    return queue;
  }

  test("one worker at a time handles a thousand messages in order and once each, while workers come and go", async () => {
    const done: string[] = [];
    /** The number of workers on the conversation now, and the highest number until now. */
    let [writing, mostWriting] = [0, 0];
    const by = new Set<number>();
    let workers = 0;
    function startWorker(): Queue {
      const id = workers++;
      const queue = openOne();
      queue.start({
        take: (waiting) => waiting.slice(0, 3),
        async work(events) {
          writing += 1;
          mostWriting = Math.max(mostWriting, writing);
          by.add(id);
          for (const event of events) {
            await new Promise(setImmediate);
            if (event.kind === "message") done.push(event.text);
          }
          writing -= 1;
          return events;
        },
        onAccepted: () => {},
      });
      return queue;
    }

    const [ingress, other] = [openOne(), openOne()];
    const texts = Array.from({ length: MESSAGES }, (_, index) => String(index));
    const first = Array.from({ length: 4 }, startWorker);
    for (const [index, text] of texts.entries()) {
      await deliver(index % 2 === 0 ? ingress : other, message(text));
      // One worker after another ends and is replaced by a new one.
      if (index % 250 === 200) {
        await first.shift()?.close(1_000);
        startWorker();
      }
    }
    await eventually(() => done.length).toBe(MESSAGES);
    expect(done).toEqual(texts);
    expect(mostWriting).toBe(1);
    expect(by.size).toBeGreaterThan(1);
  });
});
