import { randomUUID } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { isRedisMissing } from "../../lab/support/redis.ts";
import { FencedError, NO_RIGHT, withFence } from "../../src/port/right.ts";
import {
  type Addition,
  type Counters,
  createSqliteCounters,
  type Reservation,
  toCorrections,
} from "../../src/store/counters.ts";
import { createRedisCounters } from "../../src/store/redis-counters.ts";
import { countCommands, shareRedis } from "../support/shared-redis.ts";

const DAY_MS = 86_400_000;
const usedUp = (row: string, tokens: number) => ({ row, counts: { tokens }, ttlMs: DAY_MS });

/** Reserves `by` of 100 tokens of `row`. */
function toReservation(by: number, row = "all"): Reservation {
  const bounds = [{ row, counts: ["tokens", "reserved"], by, most: 100, unless: "lifted" }];
  return { id: randomUUID(), bounds, additions: [{ row, counts: { reserved: by }, ttlMs: DAY_MS }] };
}

const settle = (counters: Counters, { id, additions }: Reservation, used: Addition[]) =>
  counters.add(id, used, toCorrections(used, additions));

/** `clients` is the number of processes that use the store. */
function countersContract(open: (clients: number) => { clients: Counters[]; clock: { now: number } }): void {
  const one = () => {
    const { clients, clock } = open(1);
    return { counters: clients[0] as Counters, clock };
  };

  test("the counters add up additions, and count a repeated one once", async () => {
    const { counters } = one();
    await counters.add("first", [usedUp("a", 2), usedUp("b", 1)]);
    await counters.add("first", [usedUp("a", 2), usedUp("b", 1)]);
    await counters.add("second", [usedUp("a", 9_007_199_254_740_000)]);
    expect([...(await counters.read(["b", "none", "a"]))]).toEqual([
      ["b", { tokens: 1 }],
      ["none", {}],
      ["a", { tokens: 9_007_199_254_740_002 }],
    ]);
  });

  const read = async (counters: Counters, row = "all") => (await counters.read([row])).get(row) ?? {};

  test("the counters find rows by prefix, rename them and remove them", async () => {
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

  test("a reservation counts until the used amounts replace it", async () => {
    const { counters } = one();
    const first = toReservation(60);
    expect(await counters.reserve(first)).toBeUndefined();
    expect(await read(counters)).toEqual({ reserved: 60 });
    expect(await counters.reserve(toReservation(60))).toEqual([40]);
    expect(await settle(counters, first, [usedUp("all", 30)])).toBe(true);
    expect(await settle(counters, first, [usedUp("all", 30)])).toBe(false);
    expect(await read(counters)).toEqual({ tokens: 30 });
    expect(await counters.reserve(toReservation(60))).toBeUndefined();
  });

  test("a reservation of several bounds adds all of its amounts or none", async () => {
    const { counters } = one();
    const { id, additions, bounds } = toReservation(10, "person");
    const full = { row: "channel", counts: ["requests"], by: 1, most: 0, unless: "lifted" };
    expect(await counters.reserve({ id, additions, bounds: [...bounds, full] })).toEqual([100, 0]);
    expect(await read(counters, "person")).toEqual({});
  });

  test("a bound does not apply while a row that suspends the bound exists", async () => {
    const { counters } = one();
    const first = toReservation(100);
    await counters.reserve(first);
    await counters.add("lift", [usedUp("lifted", 1)]);
    expect(await counters.reserve(toReservation(60))).toBeUndefined();
    await counters.remove("lifted");
    expect(await counters.reserve(toReservation(60))).toEqual([-60]);
  });

  test("the counters count a reservation repeated after an outage once, even if it arrives after the used amounts", async () => {
    const { counters } = one();
    const reservation = toReservation(60);
    await counters.reserve(reservation);
    expect(await counters.reserve(reservation)).toBeUndefined();
    expect(await read(counters)).toEqual({ reserved: 60 });
    await settle(counters, reservation, [usedUp("all", 30)]);
    expect(await counters.reserve(reservation)).toBeUndefined();
    expect(await read(counters)).toEqual({ tokens: 30 });
  });

  test("the counters add further amounts in the same step, and each id only once", async () => {
    const { counters } = one();
    const first = toReservation(60);
    await counters.reserve(first);
    const used = [usedUp("all", 30)];
    const answer = { id: "answer", additions: [{ row: "all", counts: { answers: 1 }, ttlMs: DAY_MS }] };
    expect(await counters.add(first.id, used, toCorrections(used, first.additions), answer)).toBe(true);
    expect(await counters.add("second", used, [], answer)).toBe(true);
    expect(await read(counters)).toEqual({ tokens: 60, answers: 1 });
  });

  test("the counters count used amounts in full if their reservation was never made", async () => {
    const { counters } = one();
    expect(await settle(counters, toReservation(60), [usedUp("all", 30)])).toBe(true);
    expect(await read(counters)).toEqual({ tokens: 30 });
  });

  test("ten concurrent processes never use more than the limit, and no use counts twice", async () => {
    const works = fc.array(
      fc.record({
        by: fc.integer({ min: 1, max: 60 }),
        times: fc.integer({ min: 0, max: 2 }),
        isRepeated: fc.boolean(),
        part: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
      { minLength: 1, maxLength: 10 },
    );
    await fc.assert(
      fc.asyncProperty(works, async (list) => {
        const { clients } = open(4);
        const row = randomUUID();
        let [used, lost] = [0, 0];
        await Promise.all(
          list.map(async ({ by, times, isRepeated, part }, index) => {
            const client = clients[index % clients.length] as Counters;
            const reservation = toReservation(by, row);
            if ((await client.reserve(reservation)) !== undefined) return;
            if (isRepeated) expect(await client.reserve(reservation)).toBeUndefined();
            const amount = Math.floor(by * part);
            // If it was called 0 times, its process died.
            if (times === 0) lost += by;
            else used += amount;
            const end = () => settle(client, reservation, [usedUp(row, amount)]);
            await Promise.all(Array.from({ length: times }, end));
            const { tokens = 0, reserved = 0 } = await read(client, row);
            expect(tokens + reserved).toBeLessThanOrEqual(100);
          }),
        );
        const { tokens = 0, reserved = 0 } = await read(clients[0] as Counters, row);
        expect([tokens, reserved]).toEqual([used, lost]);
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

  test("rows live for their given time, even across a restart", async () => {
    const clock = { now: 0 };
    const database = new DatabaseSync(":memory:");
    const counters = createSqliteCounters(database, () => clock.now);
    await counters.add("1", [{ row: "short", counts: { tokens: 1 }, ttlMs: 1_000 }, usedUp("long", 1)]);
    clock.now = 1_000;
    const again = createSqliteCounters(database, () => clock.now);
    expect(await again.list("")).toEqual([["long", { tokens: 1 }]]);
  });
});

describe.skipIf(isRedisMissing)("counters in Redis", () => {
  const shared = shareRedis();
  countersContract((count) => {
    const clock = { now: 1_000_000 };
    const clients = Array.from({ length: count }, () => createRedisCounters(shared.connection, NO_RIGHT));
    return { clients, clock };
  });

  test("the counters drop expired rows from the index while they add others", async () => {
    const { connection } = shared;
    const counters = createRedisCounters(connection, NO_RIGHT);
    const gone = Array.from({ length: 20 }, (_, at) => ({ ...usedUp(`limit:${at}`, 1), ttlMs: 1 }));
    await counters.add("short", gone);
    await counters.add("long", [usedUp("by:ada", 1), usedUp("in:general", 1)]);
    const readIndex = () => connection.run(() => connection.client.zRange("palaver:{counters}:rows", 0, -1));
    // Each new row checks two random names.
    await vi.waitFor(
      async () => {
        const row = randomUUID();
        await counters.add(row, [usedUp(row, 1)]);
        expect((await readIndex()).filter((name) => name.startsWith("limit:"))).toEqual([]);
      },
      { timeout: 10_000, interval: 1 },
    );
  });

  test("rows live for their given time", async () => {
    const { connection } = shared;
    const counters = createRedisCounters(connection, NO_RIGHT);
    await counters.add("1", [usedUp("long", 1)]);
    const ttlMs = await connection.run(() => connection.client.pTTL("palaver:{counters}:row:long"));
    expect(ttlMs).toBeGreaterThan(DAY_MS - 60_000);
  });

  test("a process whose work another one took over reserves nothing", async () => {
    const { client, run } = shared.connection;
    const under = (value: string) => withFence(NO_RIGHT, { key: "owner", value, check: async () => {} });
    const counters = createRedisCounters(shared.connection, NO_RIGHT);
    await run(() => client.set("owner", "2"));
    const reserve = (value: string) => createRedisCounters(shared.connection, under(value)).reserve(toReservation(5));
    expect(await reserve("2")).toBeUndefined();
    await expect(reserve("1")).rejects.toThrow(FencedError);
    expect(await counters.list("all")).toEqual([["all", { reserved: 5 }]]);
  });

  test("reserving, replacing and reading take one command each, however many rows there are", async () => {
    const counters = createRedisCounters(shared.connection, NO_RIGHT);
    const rows = ["person", "channel", "workspace", "all"];
    const work = async () => {
      const all = rows.map((row) => toReservation(5, row));
      const [bounds, additions] = [all.flatMap((one) => one.bounds), all.flatMap((one) => one.additions)];
      const reservation = { id: randomUUID(), bounds, additions };
      await counters.reserve(reservation);
      await settle(counters, reservation, [usedUp("all", 3)]);
      await counters.read(rows);
    };
    // The server knows the scripts only after the first call.
    await work();
    // Reading needs no script.
    expect(await countCommands(shared.connection.client, work)).toMatchObject({ evalsha: 2 });
  });

  test("the counters need one command to read all known rows of further amounts, and one to write each", async () => {
    const counters = createRedisCounters(shared.connection, NO_RIGHT);
    const rows = ["person", "channel", "workspace", "all"];
    const additions = rows.map((row) => ({ row, counts: { requests: 1, tokens: 2, money: 3 }, ttlMs: DAY_MS }));
    await counters.add("first", additions);
    const commands = await countCommands(shared.connection.client, () => counters.add("second", additions));
    // One more command for the id.
    expect(commands).toMatchObject({ mget: 1, set: 5 });
  });

  test("one command replaces a reservation and counts the answer of the same question", async () => {
    const counters = createRedisCounters(shared.connection, NO_RIGHT);
    const reservation = toReservation(60);
    const used = [usedUp("all", 30)];
    await counters.reserve(reservation);
    await counters.add("first", used);
    const answer = { id: "answer", additions: [{ row: "all", counts: { answers: 1 }, ttlMs: DAY_MS }] };
    const add = () => counters.add(reservation.id, used, toCorrections(used, reservation.additions), answer);
    // One more command for each id.
    expect(await countCommands(shared.connection.client, add)).toMatchObject({ evalsha: 1, mget: 1, set: 3 });
  });

  test("a server that forgot the scripts receives them again", async () => {
    const { client, run } = shared.connection;
    const counters = createRedisCounters(shared.connection, NO_RIGHT);
    await counters.add("1", [usedUp("all", 1)]);
    await run(() => client.scriptFlush());
    expect(await counters.add("2", [usedUp("all", 1)])).toBe(true);
    expect(await counters.list("all")).toEqual([["all", { tokens: 2 }]]);
  });
});
