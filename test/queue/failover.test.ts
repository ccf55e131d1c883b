import { describe, expect, onTestFinished, test } from "vitest";
import { ada, message } from "../../lab/support/events.ts";
import { silent } from "../../lab/support/log.ts";
import { isRedisMissing, startRedis } from "../../lab/support/redis.ts";
import { openRedisQueue } from "../../lab/support/redis-queue.ts";
import { StoreError } from "../../src/store/outage.ts";
import { connectToRedis } from "../../src/store/redis-connection.ts";
import { startDoor } from "../support/door.ts";
import { eventually } from "../support/eventually.ts";
import { heldWorker, quickWorker } from "../support/queue-contract.ts";
import { connectWell } from "../support/shared-redis.ts";

describe.skipIf(isRedisMissing)("the queue on a Redis that becomes a replica (needs redis-server)", () => {
  test("the queue continues at the new primary with its partitions and erasures", async () => {
    const [first, second] = [await startRedis(), await startRedis()];
    const door = await startDoor(first.url);
    const [toFirst, connection] = [
      await connectWell(first.url),
      connectToRedis(door.origin.replace("http:", "redis:"), silent),
    ];
    const queue = openRedisQueue({ connection });
    onTestFinished(async () => {
      await queue.close(0);
      await Promise.all([connection.close(), toFirst.close()]);
      door.remove();
      await Promise.all([first.stop(), second.stop()]);
    });
    const held = heldWorker();
    const done: string[] = [];
    const quick = quickWorker((events) => void done.push(...events.map(({ key }) => key)));
    const isHeld = (text: string) => text.startsWith("hold");
    queue.start({
      ...held.worker,
      work: (events, signal) => {
        const [event] = events;
        const { work } = event?.kind === "message" && isHeld(event.text) ? held.worker : quick;
        return work(events, signal);
      },
    });
    const before = message("before");
    await queue.accept(before);
    await eventually(() => done).toEqual([before.key]);

    await toFirst.client.replicaOf("127.0.0.1", Number(new URL(second.url).port));
    // The address still leads to the same server, so each new connection finds a replica.
    await expect(queue.accept(message("meanwhile"))).rejects.toThrow(StoreError);
    door.leadTo(second.url);
    for (const round of [1, 2, 3]) {
      const after = message(`after ${round}`, { conversationId: `test:${round}` });
      // The first attempt may come before the client has found the new primary.
      const accept = () => queue.accept(after).then(() => "accepted", String);
      await eventually(accept).toBe("accepted");
      await eventually(() => done).toContain(after.key);
    }
    await queue.accept(message("hold this"));
    await held.untilBegun(1);
    const forgotten = queue.forget("test", ada.id, "none");
    await eventually(() => held.signals[0]?.aborted).toBe(true);
    held.ends[0]?.resolve();
    await forgotten;
    expect(queue.processes()).toBe(1);
  });
});
