import { afterEach, describe, expect, test } from "vitest";
import { ada, ben, message } from "../../lab/support/events.ts";
import { isRedisMissing } from "../../lab/support/redis.ts";
import { openRedisQueue, type RedisQueueOptions } from "../../lab/support/redis-queue.ts";
import type { InboundEvent } from "../../src/port/events.ts";
import { PART_KEYS, partitionOf } from "../../src/queue/partition.ts";
import type { Queue } from "../../src/queue/queue.ts";
import type { RedisConnection } from "../../src/store/redis-connection.ts";
import { eventually } from "../support/eventually.ts";
import { heldWorker } from "../support/queue-contract.ts";
import { connectWell, shareRedis } from "../support/shared-redis.ts";

const LONG_MS = 60_000;

/** One Slack workspace is one partition. Every deploy gives it away while answers are growing. */
describe.skipIf(isRedisMissing)("a partition that a leaving process gives away (needs redis-server)", () => {
  const shared = shareRedis();
  const open: Array<{ queue: Queue; connection: RedisConnection; end(): void }> = [];
  afterEach(async () => {
    const all = open.splice(0);
    for (const { end } of all) end();
    await Promise.all(all.map(({ queue }) => queue.close(0)));
    await Promise.all(all.map(({ connection }) => connection.close()));
  });

  async function startOne(options: Pick<RedisQueueOptions, "calls"> = {}) {
    const connection = await connectWell(shared.redis.url);
    const queue = openRedisQueue({ connection, ...options });
    const held = heldWorker();
    const waiting: InboundEvent[] = [];
    queue.start({ ...held.worker, onWaiting: (event) => void waiting.push(event) });
    const end = () => {
      for (const { resolve } of held.ends) resolve();
    };
    open.push({ queue, connection, end });
    return { ...held, queue, connection, waiting, end };
  }

  const key = (kind: "owner" | "begun" | "journal") => PART_KEYS[kind](partitionOf("slack:T:C:1"));
  const ask = (thread: string, text = thread) => message(text, { conversationId: `slack:T:C:${thread}` });
  const processesOf = (count: number, ...queues: Queue[]) =>
    eventually(() => queues.map((queue) => queue.processes())).toEqual(queues.map(() => count));

  /** Two processes. The one that works on thread 1 gets a signal to stop, with a long grace period. */
  async function leave() {
    const leaver = await startOne();
    await leaver.queue.accept(ask("1", "running"));
    await leaver.untilBegun(1);
    const heir = await startOne();
    await processesOf(2, leaver.queue, heir.queue);
    const closed = leaver.queue.close(LONG_MS);
    await eventually(() => shared.connection.client.exists(PART_KEYS.kept("slack:T:C:1"))).toBe(1);
    return { leaver, heir, closed };
  }

  /** Waits until the leaving process has renewed the mark of its running work. */
  async function untilRenewed(): Promise<void> {
    let before = Number.POSITIVE_INFINITY;
    const isRenewed = async () => {
      const leftMs = await shared.connection.client.pTTL(PART_KEYS.kept("slack:T:C:1"));
      const isMore = leftMs > before;
      before = leftMs;
      return isMore;
    };
    await eventually(isRenewed).toBe(true);
  }

  test("a partition gets a new owner at once, while its running work finishes in the old process", async () => {
    const { leaver, heir, closed } = await leave();
    await heir.queue.accept(ask("2"));
    await heir.untilBegun(1);
    expect([heir.texts(), leaver.signals[0]?.aborted]).toEqual([["2"], false]);
    leaver.end();
    await closed;
    expect(await shared.connection.client.exists(PART_KEYS.kept("slack:T:C:1"))).toBe(0);
    expect(heir.texts()).toEqual(["2"]);
  });

  test("interruptions reach the running work of a given-away partition, and the next question waits until that work has ended", async () => {
    const { leaver, heir, closed } = await leave();
    const next = ask("1", "next");
    await heir.queue.accept(next);
    await eventually(() => leaver.noticed.map(({ key }) => key)).toContain(next.key);
    await eventually(() => heir.waiting.map(({ key }) => key)).toEqual([next.key]);
    await untilRenewed();
    expect(heir.begun).toEqual([]);
    leaver.end();
    await closed;
    await heir.untilBegun(1);
    expect(heir.texts()).toEqual(["next"]);
  });

  test("the new owner resumes work that the grace period aborted, without counting a death", async () => {
    const leaver = await startOne();
    await leaver.queue.accept(ask("1", "running"));
    await leaver.untilBegun(1);
    const heir = await startOne();
    await processesOf(2, leaver.queue, heir.queue);
    const closed = leaver.queue.close(0);
    await eventually(() => leaver.signals[0]?.reason).toBe("shutdown");
    leaver.ends[0]?.reject(new Error("cut"));
    await closed;
    await heir.untilBegun(1);
    expect(heir.texts()).toEqual(["running"]);
    expect(await shared.connection.client.hVals(key("begun"))).toEqual(["1"]);
  });

  test("a running conversation moves to the new owner when the leaving process dies, which then writes nothing", async () => {
    const { leaver, heir } = await leave();
    await leaver.connection.close();
    await heir.untilBegun(1);
    expect(heir.texts()).toEqual(["running"]);
  });

  test("an erasure reaches both owners, and resolves when neither works for the person", async () => {
    const { leaver, heir, closed } = await leave();
    await heir.queue.accept(ask("1", "waiting"));
    await heir.queue.accept(message("of Ben", { conversationId: "slack:T:C:1", author: ben }));
    let isErased = false;
    const forgotten = heir.queue.forget("test", ada.id, "none").then(() => (isErased = true));
    await eventually(() => leaver.signals[0]?.reason).toBe("forgotten");
    expect(isErased).toBe(false);
    leaver.ends[0]?.reject(new Error("cut"));
    await Promise.all([forgotten, closed]);
    await heir.untilBegun(1);
    expect(heir.texts()).toEqual(["of Ben"]);
  });

  test("the new owner learns which calls count against the rate limits before it starts work", async () => {
    const steps: string[] = [];
    const calls = {
      budgetOf: ({ reply }: InboundEvent) => reply.workspaceId,
      describe: (budgets: ReadonlySet<string>) => (budgets.size > 0 ? [...budgets].join() : undefined),
      recall: (text: string) => void steps.push(`recalled ${text}`),
    };
    const leaver = await startOne({ calls });
    const reply = { platform: "test", channelId: "C", workspaceId: "T" };
    await leaver.queue.accept(message("first", { conversationId: "slack:T:C:1", reply }));
    await leaver.untilBegun(1);
    leaver.end();
    await eventually(leaver.queue.depth).toEqual({ waiting: 0, active: 0 });
    const heir = await startOne({ calls });
    await processesOf(2, leaver.queue, heir.queue);
    await leaver.queue.close(LONG_MS);
    await heir.queue.accept(message("second", { conversationId: "slack:T:C:1", reply }));
    await heir.untilBegun(1);
    expect([...steps, ...heir.texts()]).toEqual(["recalled T", "second"]);
  });

  test("a second delivery of a message counts as the same event, although it names another conversation", async () => {
    const { queue } = await startOne();
    const event = ask("1");
    expect(await queue.accept(event)).toBe(true);
    expect(await queue.accept({ ...event, conversationId: "slack:T2:C:1" })).toBe(false);
  });
});
