import { afterEach, describe, expect, test } from "vitest";
import type { MessageEvent } from "../../../src/port/events.ts";
import type { Queue } from "../../../src/queue/queue.ts";
import { createRedisQueue } from "../../../src/queue/redis/redis-queue.ts";
import { ada, message } from "../../support/events.ts";
import { eventually } from "../../support/eventually.ts";
import { silent } from "../../support/log.ts";
import { heldWorker } from "../../support/queue-contract.ts";
import { isRedisMissing } from "../../support/redis.ts";
import { shareRedis } from "../../support/shared-redis.ts";

describe.skipIf(isRedisMissing)("the budgets of the platforms, shared by processes (needs redis-server)", () => {
  const shared = shareRedis();

  const open: Queue[] = [];
  afterEach(() => Promise.all(open.splice(0).map((queue) => queue.close(0))));

  function startOne({ maxActive = 16 } = {}) {
    const queue = createRedisQueue({
      connection: shared.connection,
      maxActive,
      now: Date.now,
      log: silent,
      retryMs: [1, 4],
      cutMs: 5,
      budgetOf: ({ reply }) => reply.workspaceId,
    });
    open.push(queue);
    const held = heldWorker();
    queue.start(held.worker);
    const end = () => {
      for (const { resolve } of held.ends) resolve();
    };
    return { ...held, queue, end };
  }

  let conversations = 0;
  /** In a conversation, by a person and in a channel of its own. */
  function ask(workspaceId: string): MessageEvent {
    conversations += 1;
    const id = `${conversations}`;
    const reply = { platform: "test", channelId: id, workspaceId };
    return message(id, { conversationId: `test:${id}`, author: { ...ada, id }, reply });
  }

  test("what is written in one workspace is written by one process, and several share the workspaces", async () => {
    const all = [startOne(), startOne(), startOne()];
    const workspaces = Array.from({ length: 8 }, (_, index) => `T${index}`);
    const begunByAll = () => all.flatMap(({ begun }) => begun).length;
    // Each workspace belongs to whoever asks first. Heard of by one process, all could go to it on a machine under load.
    for (const [index, workspace] of workspaces.entries()) {
      await all[index % 3]?.queue.accept(ask(workspace));
      await eventually(begunByAll).toBe(index + 1);
    }
    for (const { queue } of all) await Promise.all(workspaces.map((workspace) => queue.accept(ask(workspace))));
    await eventually(begunByAll).toBe(32);
    const served = all.map(({ begun }) => new Set(begun.flat().map(({ reply }) => reply.workspaceId)));
    expect(served.reduce((sum, { size }) => sum + size, 0)).toBe(8);
    expect(served.every(({ size }) => size < 8)).toBe(true);
  });

  test("once nothing is written there any more, another process may", async () => {
    const [one, other] = [startOne(), startOne()];
    await one.queue.accept(ask("T"));
    await eventually(() => [...one.begun, ...other.begun].length).toBe(1);
    const [busy, idle] = one.begun.length === 1 ? [one, other] : [other, one];
    busy.end();
    await eventually(() => busy.queue.depth()).toEqual({ waiting: 0, active: 0 });
    await busy.queue.close(0);
    await idle.queue.accept(ask("T"));
    await idle.untilBegun(1);
  });

  test("a process that ends takes no more, and what it has goes on meanwhile", async () => {
    const [one, other] = [startOne(), startOne()];
    await one.queue.accept(ask("T"));
    await eventually(() => [...one.begun, ...other.begun].length).toBe(1);
    const [busy, idle] = one.begun.length === 1 ? [one, other] : [other, one];
    const closed = busy.queue.close(60_000);
    await idle.queue.accept(ask("T"));
    await idle.untilBegun(1);
    expect(busy.signals[0]?.aborted).toBe(false);
    busy.end();
    await closed;
  });

  test("a lane that waits for a place gets it in the process that writes in its workspace", async () => {
    const [one, other] = [startOne({ maxActive: 1 }), startOne({ maxActive: 1 })];
    for (let count = 0; count < 4; count++) await one.queue.accept(ask("T"));
    await eventually(() => [...one.begun, ...other.begun].length).toBe(2);
    const busy = one.begun.length === 2 ? one : other;
    expect(busy.begun).toHaveLength(2);
    // One after the other, so that something is written there all the time.
    for (const count of [2, 3]) {
      busy.ends[count - 2]?.resolve();
      await eventually(() => busy.begun.length).toBe(count + 1);
    }
  });

  test("another process with room takes up what the process that heard of it has no place for", async () => {
    const all = [startOne({ maxActive: 1 }), startOne({ maxActive: 1 }), startOne({ maxActive: 1 })];
    for (const workspace of ["T1", "T2", "T3"]) await all[0]?.queue.accept(ask(workspace));
    await eventually(() => all.map(({ begun }) => begun.length)).toEqual([1, 1, 1]);
  });

  test("an event that comes into a lane elsewhere is heard of there at once", async () => {
    const [one, other] = [startOne(), startOne()];
    const first = ask("T");
    await one.queue.accept(first);
    await eventually(() => [...one.begun, ...other.begun].length).toBe(1);
    const [busy, idle] = one.begun.length === 1 ? [one, other] : [other, one];
    const { author, conversationId, reply } = first;
    const next = message("next", { author, conversationId, reply });
    await idle.queue.accept(next);
    await eventually(() => busy.noticed.some(({ key }) => key === next.key)).toBe(true);
    busy.end();
    await eventually(() => busy.begun.length).toBe(2);
    expect(idle.begun).toEqual([]);
  });
});
