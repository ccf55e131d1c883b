import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createLogger } from "../../src/log/log.ts";
import { createEmbeddedQueue } from "../../src/queue/embedded.ts";
import { withSharedClaims } from "../../src/queue/shared-claims.ts";
import { openDatabase } from "../../src/store/database.ts";
import { createStores } from "../../src/store/keyv.ts";
import type { Marks } from "../../src/store/redis.ts";
import { message } from "../support/events.ts";
import { isRedisMissing, type RedisServer, startRedis } from "../support/redis.ts";

const log = createLogger({ level: "silent", secrets: [] });

/** A process of its own: its disk, and what it shares. */
function startProcess(marks: Marks, database = openDatabase(":memory:")) {
  const open = () => {
    const own = createEmbeddedQueue({ database, maxActive: 1, log });
    onTestFinished(() => own.close(0));
    return withSharedClaims(own, { database, marks, log });
  };
  return { queue: open(), restart: open };
}

/** Marks in memory, which can be out of reach. */
function memoryMarks() {
  const kept = new Map<string, string>();
  const state = { isAway: false };
  const reach = () => {
    if (state.isAway) throw new Error("out of reach");
  };
  const marks: Marks = {
    async claim(key, mark) {
      reach();
      if (!kept.has(key)) kept.set(key, mark);
      return kept.get(key) ?? "";
    },
    async set(key, mark) {
      reach();
      kept.set(key, mark);
    },
  };
  return { marks, kept, state };
}

test("an event that another process has taken is not taken again", async () => {
  const { marks } = memoryMarks();
  const [one, other] = [startProcess(marks), startProcess(marks)];
  const event = message("hello");
  expect(await one.queue.accept(event)).toBe(true);
  expect(await other.queue.accept(event)).toBe(false);
  expect(await one.queue.accept(event)).toBe(false);
});

test("a process that died while it took an event takes it when it comes again", async () => {
  const { marks, kept } = memoryMarks();
  const { queue, restart } = startProcess(marks);
  const first = message("first");
  await queue.accept(first);
  const owner = kept.get(first.key)?.replace("kept:", "");
  const event = message("second");
  kept.set(event.key, `pending:${owner}`);
  expect(await restart().accept(event)).toBe(true);
});

test("while another process is taking an event it is refused, so that the platform brings it again", async () => {
  const { marks, kept } = memoryMarks();
  const { queue } = startProcess(marks);
  const event = message("hello");
  kept.set(event.key, "pending:another");
  await expect(queue.accept(event)).rejects.toThrow("not yet taken");
  kept.delete(event.key);
  expect(await queue.accept(event)).toBe(true);
});

test("where the marks are out of reach an event is taken rather than lost", async () => {
  const { marks, state } = memoryMarks();
  const { queue } = startProcess(marks);
  state.isAway = true;
  expect(await queue.accept(message("hello"))).toBe(true);
});

describe.skipIf(isRedisMissing)("on Redis (needs redis-server)", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  test("of two processes that hear everything at the same moment, one takes each event", async () => {
    const starting = Array.from({ length: 2 }, async () => {
      const database = openDatabase(":memory:");
      const stores = createStores({ redisUrl: redis.url, database, log });
      onTestFinished(() => stores.close());
      if (stores.marks === undefined) throw new Error("Redis has no marks.");
      // A claim waits for its answer for a moment only, and not also for the first connection.
      await stores.isReachable(AbortSignal.timeout(10_000));
      return startProcess(stores.marks, database).queue;
    });
    const processes = await Promise.all(starting);
    const events = Array.from({ length: 40 }, () => message("hello"));
    const taken = await Promise.all(events.map((event) => Promise.all(processes.map((queue) => queue.accept(event)))));
    expect(taken.map((by) => by.filter(Boolean).length)).toEqual(events.map(() => 1));
  });
});
