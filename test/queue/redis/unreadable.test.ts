import { describe, expect, onTestFinished, test } from "vitest";
import type { KnownCall } from "../../../src/port/pace.ts";
import { createSharedCalls } from "../../../src/queue/redis/calls.ts";
import { noteGivenUp, readGivenUp } from "../../../src/queue/redis/given-up.ts";
import { KEYS } from "../../../src/queue/redis/keys.ts";
import { createPlaces, strikeOff } from "../../../src/queue/redis/places.ts";
import { createRedisQueue } from "../../../src/queue/redis/redis-queue.ts";
import type { RedisClient } from "../../../src/store/redis-connection.ts";
import { ada, ben, edited, message } from "../../support/events.ts";
import { eventually } from "../../support/eventually.ts";
import { GARBAGE } from "../../support/garbage.ts";
import { recordingLog, silent } from "../../support/log.ts";
import { heldWorker, quickWorker } from "../../support/queue-contract.ts";
import { isRedisMissing } from "../../support/redis.ts";
import { shareRedis } from "../../support/shared-redis.ts";

describe.skipIf(isRedisMissing)("what a process cannot read in the queue on Redis (needs redis-server)", () => {
  const shared = shareRedis();

  function open(log = silent) {
    const queue = createRedisQueue({ connection: shared.connection, maxActive: 16, now: Date.now, log, cutMs: 5 });
    onTestFinished(() => queue.close(0));
    return queue;
  }

  const publish = async (channel: string) => {
    for (const text of GARBAGE) await shared.connection.client.publish(channel, text);
  };

  test("an unreadable message keeps no process from hearing of edits and erasures, and is logged once per kind", async () => {
    const { log, lines } = recordingLog();
    const { worker, untilBegun, noticed, signals } = heldWorker();
    const queue = open(log);
    queue.start(worker);
    const question = message("tea?");
    await queue.accept(question);
    await untilBegun(1);
    await publish(KEYS.channel);
    await publish(KEYS.channel);
    const edit = edited(question, "coffee?");
    await queue.accept(edit);
    await eventually(() => noticed.map(({ key }) => key)).toEqual([edit.key]);
    const forgotten = queue.forget("test", ada.id, "none");
    await eventually(() => signals[0]?.aborted).toBe(true);
    await queue.close(0);
    await forgotten;
    const damage = lines.filter(({ msg }) => msg === "a stored value cannot be read and counts as absent");
    expect(damage.map(({ key }) => key)).toEqual([KEYS.channel, `${KEYS.channel}:message`, `${KEYS.channel}:poll`]);
  });

  test("an erasure reaches a process that missed the first notice", async () => {
    const { worker, untilBegun, signals } = heldWorker();
    const queue = open();
    queue.start(worker);
    await queue.accept(message("tea?"));
    await untilBegun(1);
    const { client } = shared.connection;
    let missed = 0;
    const publish = async () => (missed += 1);
    const get = (_: RedisClient, name: keyof RedisClient) => {
      const value: unknown = name === "publish" && missed === 0 ? publish : client[name];
      return typeof value === "function" ? (value.bind(client) as unknown) : value;
    };
    const deaf = { ...shared.connection, client: new Proxy(client, { get }) };
    const other = createRedisQueue({ connection: deaf, maxActive: 1, now: Date.now, log: silent });
    onTestFinished(() => other.close(0));
    const forgotten = other.forget("test", ada.id, "none");
    await eventually(() => signals[0]?.aborted).toBe(true);
    expect(missed).toBe(1);
    await queue.close(0);
    await forgotten;
  });

  test("an unreadable call keeps no process from hearing of those that follow", async () => {
    const heard: string[] = [];
    const start = (onHeard: (key: string, calls: readonly KnownCall[]) => void) => {
      const calls = createSharedCalls({ connection: shared.connection, now: Date.now, onHeard, log: silent });
      onTestFinished(calls.close);
      return calls;
    };
    const [one, other] = [start(() => {}), start((_, calls) => void heard.push(...calls.map(({ room }) => room)))];
    await shared.connection.client.rPush(KEYS.calls("T"), [...GARBAGE]);
    await other.open("T");
    await publish(KEYS.calls("T"));
    one.note("T", { kind: "edit", room: "C", isFallback: false, sentAt: performance.now() });
    await eventually(() => heard).toEqual(["C"]);
  });

  test("an unreadable event stays in its lane, and those behind it and the erasure of people go on", async () => {
    const queue = open();
    await shared.connection.client.rPush(KEYS.lane("test:a"), [...GARBAGE]);
    const mine = message("of Ben", { author: ben });
    for (const event of [message("of Ada"), mine, message("elsewhere", { conversationId: "test:b" })]) {
      await queue.accept(event);
    }
    await queue.forget("test", ben.id, "none");
    const done: string[] = [];
    queue.start(quickWorker((events) => void done.push(...events.map((event) => ("text" in event ? event.text : "")))));
    await eventually(() => done.toSorted()).toEqual(["elsewhere", "of Ada"]);
    await eventually(() => shared.connection.client.lRange(KEYS.lane("test:a"), 0, -1)).toEqual([...GARBAGE]);
  });

  test("unreadable places, processes and rounds stop no question", async () => {
    const { client } = shared.connection;
    for (const [index, text] of GARBAGE.entries()) {
      await client.hSet(KEYS.active, `active ${index}`, text);
      await client.hSet(KEYS.queued, `queued ${index}`, text);
      await client.zAdd(KEYS.workers, { score: Date.now() + 60_000, value: text });
      await client.set(KEYS.rounds, text);
      await client.set(KEYS.failures("test:a"), text);
    }
    const queue = open();
    const done: string[] = [];
    queue.start(quickWorker((events) => void done.push(...events.map(({ key }) => key))));
    const event = message("tea?");
    await queue.accept(event);
    await eventually(() => done).toEqual([event.key]);
    await queue.forget("test", ada.id, "none");
  });

  test("a process that has gone is struck off beside entries that cannot be read", async () => {
    const { connection } = shared;
    const soon = { score: Date.now() + 3_000 };
    for (const value of GARBAGE) await connection.client.zAdd(KEYS.workers, { ...soon, value });
    const ring = async () => {};
    const common = { connection, workerId: "gone", places: 1, now: Date.now, ring, log: silent };
    await createPlaces(common).beat();
    expect(await strikeOff(connection, Date.now() + 10_000)).toEqual(["gone"]);
    expect(await connection.client.zCard(KEYS.workers)).toBe(0);
  });

  test("events that were given up are listed beside entries that cannot be read", async () => {
    const { client } = shared.connection;
    await client.rPush(KEYS.givenUp, [...GARBAGE]);
    const event = { key: "k", kind: "message", laneId: "test:a", at: 1, reason: "It failed." };
    await noteGivenUp(client, event);
    expect(await readGivenUp(client)).toEqual([event]);
  });
});
