import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { silent } from "../../lab/support/log.ts";
import { isRedisMissing } from "../../lab/support/redis.ts";
import { FencedError, NO_RIGHT, withFence } from "../../src/port/right.ts";
import { PART_KEYS, PARTITIONS, partitionOf } from "../../src/queue/partition.ts";
import { BEAT, GONE_MS } from "../../src/queue/partition-scripts.ts";
import { createPartitions, type PartitionsOptions } from "../../src/queue/partitions.ts";
import { evalFenced } from "../../src/store/fenced-script.ts";
import { StoreError } from "../../src/store/outage.ts";
import { createListeningClient, type RedisConnection } from "../../src/store/redis-connection.ts";
import { eventually } from "../support/eventually.ts";
import { shareRedis } from "../support/shared-redis.ts";

const LANE = "test:a";
const PARTITION = partitionOf(LANE);
const ALL = Array.from({ length: PARTITIONS }, (_, index) => index);

describe.skipIf(isRedisMissing)("partitions of the queue (needs redis-server)", () => {
  const shared = shareRedis();
  const client = () => shared.connection.client;
  /** A connection without any known outage. */
  const steady = (): RedisConnection => ({ ...shared.connection, backForMs: () => Number.POSITIVE_INFINITY });
  const readOwners = () => client().mGet(ALL.map(PART_KEYS.owner));

  /** A process as the partitions see it. `running` are its running lanes. */
  function open(given: Partial<PartitionsOptions> = {}) {
    const running = new Set<string>();
    const log: string[] = [];
    const note = (word: string) => (what: number | string) => void log.push(`${word} ${what}`);
    const lanesOf = (partition: number) => [...running].filter((lane) => partitionOf(lane) === partition);
    const partitions = createPartitions({
      connection: steady(),
      places: 16,
      log: silent,
      onTaken: note("taken"),
      onGiving: (partition) => {
        log.push(`giving ${partition}`);
        return lanesOf(partition);
      },
      onLost: note("lost"),
      onKeptLost: note("keptLost"),
      onFreed: note("freed"),
      running: (partition) => (partition === undefined ? running.size : lanesOf(partition).length),
      ...given,
    });
    onTestFinished(partitions.close);
    /** Starts the work on a lane. Resolves to true if a write with the lane's right is accepted. */
    function work(lane: string): () => Promise<boolean> {
      running.add(lane);
      const right = partitions.rightOf(partitionOf(lane), lane);
      if (right === undefined) throw new Error("This process does not own the lane.");
      return async () => {
        const held = withFence(NO_RIGHT, right);
        return shared.connection
          .run(() => evalFenced(client(), "return 1", [], [], held))
          .then(
            () => true,
            (error: unknown) => !(error instanceof FencedError),
          );
      };
    }
    return { ...partitions, running, log, work };
  }

  async function openStarted(given: Partial<PartitionsOptions> = {}) {
    const opened = open(given);
    await opened.start();
    return opened;
  }

  /** Another process, as Redis sees it. Its last heartbeat was `silentMs` ago. */
  async function addMember(id: string, silentMs: number): Promise<void> {
    const now = await client().eval("return redis.call('TIME')[1] * 1000");
    await client().hSet(PART_KEYS.members, id, `${Number(now) - silentMs} 16 0`);
    await client().mSet(ALL.map((partition): [string, string] => [PART_KEYS.owner(partition), `1:${id}`]));
  }

  /** A connection whose operations wait until `pass` is called, or fail. */
  function hold(backForMs = () => Number.POSITIVE_INFINITY) {
    const gate = Promise.withResolvers<void>();
    const connection: RedisConnection = {
      ...shared.connection,
      backForMs,
      run: async (operation, on) => {
        await gate.promise;
        return shared.connection.run(operation, on);
      },
    };
    return { connection, pass: gate.resolve };
  }

  test("partitions belong to the only process, and cost it five commands per heartbeat", async () => {
    const one = await openStarted();
    expect(one.owned()).toEqual(ALL);
    expect(one.log).toEqual(ALL.map((partition) => `taken ${partition}`));
    await client().configResetStat();
    const readCalls = async () => {
      const text = await client().info("commandstats");
      const calls = [...text.matchAll(/cmdstat_(\w+(?:\|\w+)?):calls=(\d+)/g)].map(([, name, count]) => [
        name,
        Number(count),
      ]);
      return Object.fromEntries(calls) as Record<string, number>;
    };
    await eventually(async () => (await readCalls())["evalsha"] ?? 0).toBeGreaterThan(3);
    const { evalsha = 0, info: _, ping: __, "config|resetstat": ___, ...inside } = await readCalls();
    expect(inside).toEqual({ time: evalsha, hset: evalsha, hgetall: evalsha, mget: evalsha });
  });

  test("processes own even shares of the partitions, and give some to a joining process without losing any", async () => {
    const sizesOf = (all: ReadonlyArray<Awaited<ReturnType<typeof openStarted>>>) =>
      all.map(({ owned }) => owned().length).toSorted((one, other) => one - other);
    const three = [await openStarted(), await openStarted(), await openStarted()];
    await eventually(() => sizesOf(three)).toEqual([20, 22, 22]);
    const four = [...three, await openStarted()];
    await eventually(() => sizesOf(four)).toEqual([16, 16, 16, 16]);
    expect(new Set((await readOwners()).map((owner) => owner?.split(":")[1])).size).toBe(4);
    expect(four.flatMap(({ log }) => log).filter((line) => line.startsWith("lost"))).toEqual([]);
  });

  test("a silent process that Redis sees keeps its partitions, and a process that Redis does not see loses them", async () => {
    // A heartbeat from the future, as if Redis's clock had gone back. Its age does not grow, however long the test
    // takes.
    const SILENT_MS = -60_000;
    await addMember("other", SILENT_MS);
    const listening = createListeningClient(shared.connection);
    await listening.connect();
    await listening.subscribe(PART_KEYS.alive("other"), () => {});
    onTestFinished(() => void (listening.isOpen && listening.destroy()));
    const one = await openStarted();
    expect(one.owned()).toEqual([]);
    await addMember("other", SILENT_MS);
    listening.destroy();
    await eventually(() => one.owned().length).toBe(PARTITIONS);
  });

  test("a heartbeat reports when a process that lost its connection will count as dead", async () => {
    const beat = async (silentMs: number) => {
      const [seconds, microseconds] = await client().time();
      const now = Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
      await client().hSet(PART_KEYS.members, "dead", `${now - silentMs} 16 0`);
      const answer = await client().eval(BEAT, { arguments: ["living", "16", "0", ""] });
      await client().hDel(PART_KEYS.members, ["dead", "living"]);
      return z.array(z.unknown()).parse(answer).at(-1);
    };
    expect(await beat(0)).toBe(-1);
    expect(z.int().parse(await beat(GONE_MS / 2 + 50))).toBeGreaterThan(0);
    expect(await beat(2 * GONE_MS)).toBe(-1);
  });

  test("a process that only accepts owns no partition, but counts as a process", async () => {
    const [door, worker] = [await openStarted({ places: 0 }), await openStarted()];
    await eventually(() => [door.processes(), worker.processes()]).toEqual([2, 2]);
    expect([door.owned().length, worker.owned().length]).toEqual([0, PARTITIONS]);
    worker.running.add(LANE);
    await eventually(() => [door.placesOfAll(), door.runningElsewhere(), worker.runningElsewhere()]).toEqual([
      16, 1, 0,
    ]);
  });

  test("each running lane of a given-away partition has a mark under which its work ends", async () => {
    const [one, other] = [await openStarted(), await openStarted()];
    await eventually(() => [one.owned().length, other.owned().length]).toEqual([32, 32]);
    // Partitions without running work are given away first.
    const [first = 0] = one.owned();
    const lane =
      Array.from({ length: 9_999 }, (_, index) => `test:${index}`).find((id) => partitionOf(id) === first) ?? "";
    const write = one.work(lane);
    const right = one.rightOf(first, lane);
    const owner = right?.key;
    expect([right?.covers?.(lane), right?.covers?.("another")]).toEqual([true, false]);
    await one.leave();
    expect(right?.covers?.(lane)).toBe(false);
    await eventually(() => other.owned().length).toBe(PARTITIONS);
    expect([owner, right?.key]).toEqual([PART_KEYS.owner(first), PART_KEYS.kept(lane)]);
    await right?.check();
    expect(await write()).toBe(true);
    expect(one.isHeld(first)).toBe(true);
    await client().del(PART_KEYS.kept(lane));
    one.forgetKept(lane);
    expect([one.isHeld(first), await write()]).toEqual([false, false]);
    await expect(right?.check()).rejects.toThrow(FencedError);
  });

  test("partitions are given away again with the same marks if Redis's response was lost", async () => {
    let lost = 0;
    const run: RedisConnection["run"] = async (operation, on) => {
      const answer = await shared.connection.run(operation, on);
      // The lost lanes in the response to a release or to a renewal.
      if (!Array.isArray(answer) || answer.length > 0 || lost++ > 0) return answer;
      throw new StoreError("Redis did not answer within 2 s.");
    };
    const one = await openStarted({ connection: { ...steady(), run } });
    const write = one.work(LANE);
    await one.leave();
    expect(lost).toBeGreaterThan(1);
    expect(one.log.filter((line) => line.startsWith("giving"))).toHaveLength(PARTITIONS);
    expect(one.log).not.toContain(`keptLost ${LANE}`);
    expect(await write()).toBe(true);
  });

  test("giving away a partition that another process owns leaves no mark", async () => {
    const one = await openStarted();
    const write = one.work(LANE);
    await client().set(PART_KEYS.owner(PARTITION), "99:other");
    await one.leave();
    expect(one.log).toContain(`keptLost ${LANE}`);
    expect(await client().exists(PART_KEYS.kept(LANE))).toBe(0);
    expect(await write()).toBe(false);
  });

  test("a process that was stopped for long writes only after Redis confirms its right", async () => {
    const other = createListeningClient(shared.connection);
    await other.connect();
    onTestFinished(() => other.destroy());
    const giving = Promise.withResolvers<void>();
    const onGiving = (partition: number) => {
      if (partition !== PARTITION) return [];
      giving.resolve();
      return [LANE];
    };
    const one = await openStarted({ onGiving });
    const right = one.rightOf(PARTITION, LANE);
    await other.set(PART_KEYS.owner(PARTITION), "99:other");
    // After this time, the process can no longer be certain that it owns its partitions.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_600);
    const left = one.leave();
    await giving.promise;
    await expect(right?.check()).rejects.toThrow(FencedError);
    await left;
  });

  test("a process decides about partitions with the knowledge of outages that it had when it sent the command", async () => {
    await addMember("other", 10_000);
    let backMs = Number.POSITIVE_INFINITY;
    const held = hold(() => backMs);
    const one = open({ connection: held.connection });
    const started = one.start();
    // The process learns that Redis was away only while the command waits for the connection.
    backMs = 0;
    held.pass();
    await started;
    expect(one.owned()).toEqual([]);
    backMs = Number.POSITIVE_INFINITY;
    await eventually(() => one.owned().length).toBe(PARTITIONS);
  });

  test("a new heartbeat confirms the partitions when the connection returns, although the previous heartbeat hangs", async () => {
    const hanging = Promise.withResolvers<never>();
    let isHanging = false;
    const run: RedisConnection["run"] = (operation, on) =>
      isHanging ? hanging.promise : shared.connection.run(operation, on);
    let beats = 0;
    const running = () => (beats += 1);
    const one = await openStarted({ connection: { ...steady(), run }, running });
    isHanging = true;
    const right = one.rightOf(PARTITION, LANE);
    const ask = () => Promise.race([right?.check().then(() => "sure"), sleep(1, "unsure")]);
    // Meanwhile a heartbeat is due, and Redis does not answer it.
    await eventually(ask).toBe("unsure");
    const before = beats;
    isHanging = false;
    client().emit("ready");
    await eventually(() => beats).toBeGreaterThan(before);
    await eventually(ask).toBe("sure");
    hanging.reject(new StoreError("too late"));
  });

  test("a process holds its partitions while Redis is unreachable, unless it was stopped meanwhile", async () => {
    let isAway = false;
    const run: RedisConnection["run"] = (operation, on) =>
      isAway ? Promise.reject(new StoreError("away")) : shared.connection.run(operation, on);
    const one = await openStarted({ connection: { ...steady(), run } });
    const right = one.rightOf(PARTITION, LANE);
    const ask = () => Promise.race([right?.check().then(() => "sure"), sleep(1, "unsure")]);
    isAway = true;
    await eventually(ask).toBe("unsure");
    await eventually(ask).toBe("sure");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
    const awokeAt = performance.now();
    // After this time, Redis counts as unreachable again.
    await eventually(() => performance.now() - awokeAt).toBeGreaterThan(3_000);
    expect(await ask()).toBe("unsure");
    isAway = false;
    await eventually(ask).toBe("sure");
  });

  test("a leaving process does not take a partition when one becomes free", async () => {
    const one = await openStarted();
    await one.leave();
    const owners = await readOwners();
    expect(owners.every((owner) => /^\d+:$/.test(owner ?? ""))).toBe(true);
    const readMember = async () => (await client().hVals(PART_KEYS.members))[0];
    const before = await readMember();
    await client().publish(PART_KEYS.changed, "");
    await eventually(readMember).not.toBe(before);
    expect(await readOwners()).toEqual(owners);
  });

  test("a late response from Redis does not bring back partitions that were given away", async () => {
    const late = Promise.withResolvers<void>();
    let isLate = false;
    let delayed = 0;
    const run: RedisConnection["run"] = async (operation, on) => {
      const answer = await shared.connection.run(operation, on);
      // The response to a heartbeat has seven values. All other responses have fewer.
      if (!isLate || !Array.isArray(answer) || answer.length !== 7) return answer;
      delayed += 1;
      await late.promise;
      return answer;
    };
    const one = await openStarted({ connection: { ...steady(), run } });
    isLate = true;
    await eventually(() => delayed).toBe(1);
    await one.leave();
    one.log.length = 0;
    isLate = false;
    late.resolve();
    const beaten = one.processes;
    await openStarted({ places: 0 });
    await eventually(beaten).toBe(2);
    expect(one.log).toEqual([]);
  });

  test("a process waits for its partitions while Redis loads its data", async () => {
    let refusals = 0;
    const run: RedisConnection["run"] = (operation, on) => {
      if (++refusals > 3) return shared.connection.run(operation, on);
      return Promise.reject(new StoreError("Redis is loading the dataset in memory"));
    };
    const one = await openStarted({ connection: { ...steady(), run } });
    expect(one.owned()).toEqual(ALL);
  });

  test("partitions stay with their owner when Redis comes back empty", async () => {
    const one = await openStarted({ connection: shared.connection });
    await eventually(() => one.owned().length).toBe(PARTITIONS);
    const write = one.work(LANE);
    const owners = await readOwners();
    await shared.redis.restart();
    await eventually(() => client().isReady).toBe(true);
    await eventually(() => client().exists(PART_KEYS.members)).toBe(1);
    await eventually(write).toBe(true);
    expect(await readOwners()).toEqual(owners);
    expect(one.log.filter((line) => !line.startsWith("taken"))).toEqual([]);
    const other = await openStarted();
    await eventually(() => other.owned().length).toBe(PARTITIONS / 2);
    expect(Number(await client().get(PART_KEYS.epoch))).toBe(2);
  });

  test("a process frees all its partitions when it closes", async () => {
    const [one, other] = [await openStarted(), await openStarted()];
    await eventually(() => [one.owned().length, other.owned().length]).toEqual([32, 32]);
    await one.close();
    await eventually(() => other.owned().length).toBe(PARTITIONS);
    expect(other.processes()).toBe(1);
  });
});
