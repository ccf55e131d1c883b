import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { KEYS } from "../../../src/queue/redis/keys.ts";
import { createRedisLanes, LEASE_MS, SURE_MS } from "../../../src/queue/redis/lanes.ts";
import { createPlaces, strikeOff } from "../../../src/queue/redis/places.ts";
import { createSweep } from "../../../src/queue/redis/sweep.ts";
import { createListeningClient } from "../../../src/store/redis-connection.ts";
import { message } from "../../support/events.ts";
import { eventually } from "../../support/eventually.ts";
import { silent } from "../../support/log.ts";
import { isRedisMissing } from "../../support/redis.ts";
import { shareRedis } from "../../support/shared-redis.ts";

const LANE = "test:a";

describe.skipIf(isRedisMissing)("processes that are gone, and what they worked on (needs redis-server)", () => {
  const shared = shareRedis();
  const lanesOf = (workerId: string) => createRedisLanes(shared.connection, Date.now, workerId, silent);

  beforeEach(async () => void (await lanesOf("none").accept(message("hello"))));

  /** As a process does for as long as it lives. */
  async function live(workerId: string): Promise<{ die(): void }> {
    const listening = createListeningClient(shared.connection);
    await listening.connect();
    await listening.subscribe(KEYS.alive(workerId), () => {});
    const die = () => (listening.isOpen ? listening.destroy() : undefined);
    onTestFinished(die);
    return { die };
  }

  /** Another process tries, at the moment at which so much of the lease is over. */
  async function takeAfter(passedMs: number): Promise<boolean> {
    const { client } = shared.connection;
    // Sent together, so that nothing comes between them.
    const [, taken] = await Promise.all([
      client.pExpire(KEYS.lease(LANE), LEASE_MS - passedMs),
      lanesOf("other").take(LANE),
    ]);
    return taken !== undefined;
  }

  test("a lease is kept to its end for a process that is seen to live", async () => {
    await live("one");
    await lanesOf("one").take(LANE);
    expect(await takeAfter(SURE_MS + 500)).toBe(false);
  });

  test("the lease of a process that is gone ends as soon as it would ask before it writes", async () => {
    const { die } = await live("one");
    await lanesOf("one").take(LANE);
    die();
    await eventually(() => shared.connection.client.pubSubNumSub([KEYS.alive("one")])).toEqual({
      [KEYS.alive("one")]: 0,
    });
    expect(await takeAfter(SURE_MS - 500)).toBe(false);
    expect(await takeAfter(SURE_MS + 500)).toBe(true);
  });

  test("a lease is kept to its end for a process that was never seen, as while it comes back to Redis", async () => {
    await lanesOf("one").take(LANE);
    expect(await takeAfter(SURE_MS + 500)).toBe(false);
  });

  test("a process without a connection is struck off before one that only says nothing, each once", async () => {
    const beat = (workerId: string) =>
      createPlaces({
        connection: shared.connection,
        workerId,
        places: 1,
        now: () => 0,
        ring: async () => {},
        log: silent,
      }).beat();
    const strikeOffAt = (now: number) => strikeOff(shared.connection, now);
    await live("silent");
    for (const workerId of ["silent", "gone"]) await beat(workerId);
    expect(await strikeOffAt(1_000)).toEqual([]);
    expect(await strikeOffAt(2_000)).toEqual(["gone"]);
    expect(await strikeOffAt(3_000)).toEqual(["silent"]);
    expect(await strikeOffAt(3_000)).toEqual([]);
  });

  test("a lane with a lease of which its process does not know is found by the first sweep after its end", async () => {
    const { connection } = shared;
    const rung: string[] = [];
    const ring = async (laneId: string) => void rung.push(laneId);
    let [nowMs, leaseMs] = [Date.now() + 10_000, LEASE_MS / 2];
    const now = () => nowMs;
    const lanes = { ...lanesOf("one"), leaseMs: async () => leaseMs };
    const places = createPlaces({ connection, workerId: "one", places: 1, now, ring, log: silent });
    const { ringUnheard } = createSweep({ connection, lanes, places, bells: { leftBy: async () => [] }, now, ring });
    await ringUnheard();
    expect(rung).toEqual([]);
    [nowMs, leaseMs] = [nowMs + leaseMs, 0];
    await connection.client.del(KEYS.sweep);
    await ringUnheard();
    expect(rung).toEqual([LANE]);
  });
});
