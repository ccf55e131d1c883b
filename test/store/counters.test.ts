import { randomUUID } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { FencedError, withFence } from "../../src/concurrency/fence.ts";
import { type Counters, createSqliteCounters, type Hold } from "../../src/store/counters.ts";
import { createRedisCounters } from "../../src/store/redis-counters.ts";
import { isRedisMissing } from "../support/redis.ts";
import { shareRedis } from "../support/shared-redis.ts";

const DAY_MS = 86_400_000;
const usedUp = (row: string, tokens: number) => ({ row, counts: { tokens }, ttlMs: DAY_MS });

function toHold(id: string, by: number, most: number, more: Partial<Hold> = {}): Hold {
  const bounds = [{ row: "all", count: "tokens", by, most }];
  return { id, token: randomUUID(), bounds, loss: [usedUp("all", by)], forMs: 60_000, ...more };
}

/** `clients`: as many processes have the store. */
function countersContract(open: (clients: number) => { clients: Counters[]; clock: { now: number } }): void {
  const one = () => {
    const { clients, clock } = open(1);
    return { counters: clients[0] as Counters, clock };
  };

  test("additions sum up, and the same one counts once", async () => {
    const { counters } = one();
    await counters.add("first", [usedUp("a", 2), usedUp("b", 1)]);
    await counters.add("first", [usedUp("a", 2), usedUp("b", 1)]);
    await counters.add("second", [usedUp("a", 9_007_199_254_740_000)]);
    expect(await counters.read("a")).toEqual({ tokens: 9_007_199_254_740_002 });
    expect(await counters.read("b")).toEqual({ tokens: 1 });
    expect(await counters.read("none")).toEqual({});
  });

  test("rows are found by how they begin, given other names, and removed", async () => {
    const { counters } = one();
    await counters.add("1", [usedUp("by:ada:1", 1), usedUp("by:ada:2", 2), usedUp("by:adam:1", 4), usedUp("by", 8)]);
    await counters.rename("by:ada:1", "by:@x:1");
    await counters.rename("by:ada:2", "by:@x:1");
    await counters.rename("none", "by:@x:1");
    expect(await counters.list("by:ada:")).toEqual([]);
    expect(await counters.list("by:")).toEqual([
      ["by:@x:1", { tokens: 3 }],
      ["by:adam:1", { tokens: 4 }],
    ]);
    await counters.remove("by:adam:1");
    expect(await counters.list("by:a")).toEqual([]);
  });

  test("a hold takes room until it is settled with what was used", async () => {
    const { counters } = one();
    const first = toHold("first", 60, 100);
    expect(await counters.hold(first)).toEqual([100]);
    expect(await counters.readHeld("all")).toEqual({ tokens: 60 });
    expect(await counters.hold(toHold("second", 60, 100))).toEqual([40]);
    expect(await counters.countHolds()).toBe(1);
    expect(await counters.settle("first", first.token, [usedUp("all", 30)])).toBe(true);
    expect(await counters.settle("first", first.token, [usedUp("all", 30)])).toBe(false);
    expect(await counters.read("all")).toEqual({ tokens: 30 });
    expect(await counters.readHeld("all")).toEqual({});
    expect(await counters.hold(toHold("second", 60, 100))).toEqual([70]);
  });

  test("of several bounds all are held, or none", async () => {
    const { counters } = one();
    const bounds = [
      { row: "person", count: "tokens", by: 10, most: 100 },
      { row: "channel", count: "requests", by: 1, most: 0 },
    ];
    expect(await counters.hold(toHold("first", 0, 0, { bounds }))).toEqual([100, 0]);
    expect(await counters.readHeld("person")).toEqual({});
    expect(await counters.countHolds()).toBe(0);
  });

  test("another attempt at the same work finds what the one before it held, which counts as lost", async () => {
    const { counters } = one();
    const dead = toHold("turn", 60, 100);
    await counters.hold(dead);
    expect(await counters.hold(dead)).toEqual([100]);
    expect(await counters.hold(toHold("turn", 40, 100))).toEqual([40]);
    expect(await counters.read("all")).toEqual({ tokens: 60 });
    // The dead one was only slow: it may not end what is another's.
    expect(await counters.settle("turn", dead.token, [usedUp("all", 50)])).toBe(false);
    expect(await counters.readHeld("all")).toEqual({ tokens: 40 });
  });

  test("a hold that nobody settles lapses, and counts as lost", async () => {
    const { counters, clock } = one();
    await counters.hold(toHold("dead", 60, 100));
    clock.now += 60_000;
    expect(await counters.countHolds()).toBe(0);
    expect(await counters.readHeld("all")).toEqual({});
    expect(await counters.read("all")).toEqual({ tokens: 60 });
  });

  test.each([true, false])(
    "what is held tentatively is lost without being counted, until it is confirmed: %j",
    async (isConfirmed) => {
      const { counters, clock } = one();
      const money = 4_503_599_627_370_001;
      const loss = [{ row: 'by: "isTentative":true', counts: { tokens: 60, money }, ttlMs: DAY_MS }];
      const [taken, left] = ["taken", "left"].map((id) => toHold(id, 10, 100, { loss, isTentative: true }));
      if (taken === undefined || left === undefined) throw new Error("two holds are made");
      for (const hold of [taken, left]) {
        await counters.hold(hold);
        if (isConfirmed) expect(await counters.confirm(hold.id, hold.token)).toBe(true);
      }
      const next = toHold("taken", 10, 100);
      await counters.hold(next);
      expect(await counters.confirm("taken", taken.token)).toBe(false);
      expect(await counters.settle("taken", next.token, [])).toBe(true);
      const once = isConfirmed ? { tokens: 60, money } : {};
      expect(await counters.read(loss[0]?.row ?? "")).toEqual(once);
      await counters.settle("left", randomUUID(), loss);
      clock.now += 60_000;
      expect(await counters.countHolds()).toBe(0);
      expect((await counters.read(loss[0]?.row ?? ""))["tokens"]).toBe(isConfirmed ? 120 : undefined);
      expect(await counters.readHeld("all")).toEqual({});
    },
  );

  test("ten at once never hold more than there is, whether they settle or lapse", async () => {
    const works = fc.array(
      fc.record({
        by: fc.integer({ min: 1, max: 60 }),
        end: fc.constantFrom<"settled" | "settled twice" | "taken over" | "dead">(
          "settled",
          "settled twice",
          "taken over",
          "dead",
        ),
        part: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
      { minLength: 1, maxLength: 10 },
    );
    await fc.assert(
      fc.asyncProperty(works, async (list) => {
        const { clients, clock } = open(4);
        const row = randomUUID();
        let isOver = false;
        const check = async (client: Counters) => {
          const used = (await client.read(row))["tokens"] ?? 0;
          if (used > 100) isOver = true;
        };
        await Promise.all(
          list.map(async ({ by, end, part }, index) => {
            const client = clients[index % clients.length] as Counters;
            const bounds = [{ row, count: "tokens", by, most: 100 }];
            const hold = toHold(`${row}:${index}`, by, 100, { bounds, loss: [usedUp(row, by)] });
            const [left = 0] = await client.hold(hold);
            if (left < by) return;
            const used = [usedUp(row, Math.floor(by * part))];
            if (end === "taken over") await (clients.at(-1) as Counters).hold({ ...hold, token: "another" });
            if (end.startsWith("settled")) await client.settle(hold.id, hold.token, used);
            if (end === "settled twice") await client.settle(hold.id, hold.token, used);
            await check(client);
          }),
        );
        clock.now += 60_000;
        const [client] = clients as [Counters];
        expect(await client.countHolds()).toBe(0);
        expect(await client.readHeld(row)).toEqual({});
        await check(client);
        expect(isOver).toBe(false);
      }),
      { numRuns: 40 },
    );
  });
}

describe("counters in the database", () => {
  countersContract((count) => {
    const clock = { now: 1_000_000 };
    const counters = createSqliteCounters(new DatabaseSync(":memory:"), () => clock.now);
    return { clients: Array.from({ length: count }, () => counters), clock };
  });

  test("rows are kept for as long as they were given, and over a restart", async () => {
    const clock = { now: 0 };
    const database = new DatabaseSync(":memory:");
    const counters = createSqliteCounters(database, () => clock.now);
    await counters.add("1", [{ row: "short", counts: { tokens: 1 }, ttlMs: 1_000 }, usedUp("long", 1)]);
    clock.now = 1_000;
    const again = createSqliteCounters(database, () => clock.now);
    expect(await again.list("")).toEqual([["long", { tokens: 1 }]]);
  });

  test("a hold on disk that cannot be read ends without a loss", async () => {
    const database = new DatabaseSync(":memory:");
    const counters = createSqliteCounters(database, () => 0);
    await counters.hold(toHold("turn", 5, 10));
    database.exec("UPDATE hold SET body = 'x'");
    expect(await counters.hold(toHold("turn", 10, 10))).toEqual([10]);
    expect(await counters.read("all")).toEqual({});
  });
});

describe.skipIf(isRedisMissing)("counters in Redis", () => {
  const shared = shareRedis();
  countersContract((count) => {
    const clock = { now: 1_000_000 };
    const clients = Array.from({ length: count }, () => createRedisCounters(shared.connection, () => clock.now));
    return { clients, clock };
  });

  test("rows that expired leave the index while others are added", async () => {
    const { connection } = shared;
    const counters = createRedisCounters(connection, () => 0);
    const gone = Array.from({ length: 20 }, (_, at) => ({ ...usedUp(`limit:${at}`, 1), ttlMs: 1 }));
    await counters.add("short", gone);
    await counters.add("long", [usedUp("by:ada", 1), usedUp("in:general", 1)]);
    const readIndex = () => connection.run(() => connection.client.zRange("palaver:{counters}:rows", 0, -1));
    // Each addition looks at a few names by chance: at two of at most 22.
    await vi.waitFor(
      async () => {
        await counters.add(randomUUID(), [usedUp("by:ada", 1)]);
        expect(await readIndex()).toEqual(["by:ada", "in:general"]);
      },
      { timeout: 10_000, interval: 1 },
    );
  });

  test("rows are kept for as long as they were given", async () => {
    const { connection } = shared;
    const counters = createRedisCounters(connection, () => 0);
    await counters.add("1", [usedUp("long", 1)]);
    const ttlMs = await connection.run(() => connection.client.pTTL("palaver:{counters}:row:long"));
    expect(ttlMs).toBeGreaterThan(DAY_MS - 60_000);
  });

  test("a late hold of a process that was taken over from ends no other one", async () => {
    const { client, run } = shared.connection;
    const counters = createRedisCounters(shared.connection, () => 0);
    await run(() => client.set("owner", "2"));
    const hold = (value: string, one: Hold) =>
      withFence({ key: "owner", value, check: async () => {} }, () => counters.hold(one));
    const own = toHold("turn", 5, 10);
    await hold("2", own);
    await expect(hold("1", toHold("turn", 5, 10))).rejects.toThrow(FencedError);
    expect(await counters.confirm("turn", own.token)).toBe(true);
    expect(await counters.readHeld("all")).toEqual({ tokens: 5 });
  });
});
