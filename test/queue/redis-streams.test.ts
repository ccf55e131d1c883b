import { describe, expect, onTestFinished, test } from "vitest";
import { message } from "../../lab/support/events.ts";
import { recordingLog } from "../../lab/support/log.ts";
import { isRedisMissing } from "../../lab/support/redis.ts";
import { PART_KEYS } from "../../src/queue/partition.ts";
import { createStreams } from "../../src/queue/redis-streams.ts";
import { createListeningClient, type RedisClient } from "../../src/store/redis-connection.ts";
import { eventually } from "../support/eventually.ts";
import { GARBAGE } from "../support/garbage.ts";
import { shareRedis } from "../support/shared-redis.ts";

const PARTITION = 7;

describe.skipIf(isRedisMissing)("the reader of journals (needs redis-server)", () => {
  const shared = shareRedis();

  /** `onRead` can delay or replace each read. */
  function start(onRead: (read: () => Promise<unknown>) => Promise<unknown> = (read) => read()) {
    const { connection } = shared;
    const blocking = createListeningClient(connection);
    blocking.connect().catch(() => {});
    const get = (_: RedisClient, name: keyof RedisClient): unknown => {
      const value: unknown = blocking[name];
      if (typeof value !== "function") return value;
      const call: unknown = value.bind(blocking);
      if (name !== "xRead" || typeof call !== "function") return call;
      return (...given: unknown[]) => onRead(async () => (await call(...given)) as unknown);
    };
    const texts: string[] = [];
    const erased: string[] = [];
    let isAtEnd = false;
    const { log, lines } = recordingLog();
    const streams = createStreams({
      connection,
      log,
      onEntries: (_, entries, isLast) => {
        isAtEnd = isLast;
        for (const { event } of entries) if (event.kind === "message") texts.push(event.text);
      },
      onErasure: (_, __, { authorId }) => void erased.push(authorId),
      onCalls() {},
      isRead: () => true,
    });
    void streams.read(new Proxy(blocking, { get }), PART_KEYS.wake("test"));
    onTestFinished(() => {
      streams.close();
      blocking.destroy();
    });
    return { streams, texts, erased, lines, isAtEnd: () => isAtEnd };
  }

  const key = PART_KEYS.journal(PARTITION);
  const add = (text: string) => shared.connection.client.xAdd(key, "*", { e: JSON.stringify(message(text)) });
  const wake = () => shared.connection.client.xAdd(PART_KEYS.wake("test"), "*", { w: "" });

  test("the reader discards entries read before a partition was taken again, to keep the order", async () => {
    for (const text of ["one", "two"]) await add(text);
    const [reading, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let reads = 0;
    const { streams, texts } = start(async (read) => {
      const found = await read();
      if (found !== null && (reads += 1) === 1) {
        reading.resolve();
        await goOn.promise;
      }
      return found;
    });
    streams.take(PARTITION);
    await wake();
    await reading.promise;
    streams.take(PARTITION);
    goOn.resolve();
    await add("three");
    await eventually(() => texts).toEqual(["one", "two", "three"]);
  });

  test("the reader reports the end of a journal that exactly fills its reads", async () => {
    for (let count = 0; count < 200; count++) await add(String(count));
    const { streams, texts, isAtEnd } = start();
    streams.take(PARTITION);
    await eventually(isAtEnd).toBe(true);
    expect(texts).toHaveLength(200);
  });

  test("the reader reconnects when a read does not return, and continues at the same entry", async () => {
    let reads = 0;
    const { streams, texts } = start((read) => ((reads += 1) === 2 ? new Promise<never>(() => {}) : read()));
    streams.take(PARTITION);
    await add("one");
    await wake();
    await eventually(() => texts).toEqual(["one"]);
    await add("two");
    await eventually(() => texts).toEqual(["one", "two"]);
    expect(reads).toBeGreaterThan(2);
  });

  test("the reader skips and keeps unreadable entries, and logs each kind once", async () => {
    const { client } = shared.connection;
    const { streams, texts, erased, lines } = start();
    for (const text of [...GARBAGE, ...GARBAGE]) await client.xAdd(key, "*", { e: text });
    for (const text of GARBAGE) await client.xAdd(key, "*", { x: text });
    await client.xAdd(key, "*", { other: "of a newer version" });
    await client.xAdd(key, "*", { x: JSON.stringify({ platform: "test", authorId: "ada", exceptKey: "" }) });
    await add("one");
    streams.take(PARTITION);
    await wake();
    await eventually(() => texts).toEqual(["one"]);
    expect(erased).toEqual(["ada"]);
    expect(new Set(lines.map(({ key }) => key)).size).toBe(lines.length);
    expect(await client.xLen(key)).toBe(3 * GARBAGE.length + 3);
  });
});
