import type { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { isRedisMissing, type RedisServer, startRedis } from "../../lab/support/redis.ts";
import { turnsOver } from "../../lab/support/turns.ts";
import { createHistory, type History } from "../../src/history/history.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { openDatabase } from "../../src/store/database.ts";
import type { Entries } from "../../src/store/keyv.ts";
import { createStores, type Stores } from "../../src/store/keyv.ts";
import { answered, said, uniqueId } from "../support/history-contract.ts";

let database: DatabaseSync;
beforeAll(() => {
  database = openDatabase(":memory:");
});
afterAll(() => database.close());

const ada = { platform: "test", id: "ada", name: "Ada" };
const ben = { platform: "test", id: "ben", name: "Ben" };

/** Entries are ordered by the time at which they were written, from the store's clock. */
async function nextMillisecond(): Promise<void> {
  const now = Date.now();
  await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(now + 1), { interval: 1 });
}

/** `dump` returns every key and value of the store as text. */
function authorsContract(start: () => { open: (namespace: string) => Entries; dump: () => Promise<string> }) {
  let history: History;
  let open: (namespace: string) => Entries;
  let dump: () => Promise<string>;
  let shared: string;
  let direct: string;
  beforeEach(async () => {
    ({ open, dump } = start());
    await open("history").clear();
    history = createHistory({ open, inTurn: turnsOver(open), ttlMs: 600_000, log: silent, now: () => 5_000 });
    [shared, direct] = [uniqueId("shared"), uniqueId("direct")];
    await history.append(shared, said("a1", "ada asks", ada));
    await history.append(shared, said("b1", "ben asks", ben));
    await history.append(shared, answered("t1", "to ada", ada), ["p1", "p2"]);
    await history.append(shared, answered("t2", "to ben", ben), ["p3"]);
    await history.append(direct, said("a2", "ada in private", ada));
    // The same id on another platform is another person.
    await history.append(shared, said("x1", "a stranger", { ...ada, platform: "other" }));
  });
  const idsIn = async (conversationId: string) =>
    (await history.read(conversationId, { maxEntries: 100 })).entries.map(({ id }) => id);

  test("an export contains a person's messages and the answers to them, by conversation, and nothing of others", async () => {
    const kept = await history.exportAuthor("test", "ada");
    expect(kept).toMatchObject({ platform: "test", authorId: "ada", exportedAt: 5_000 });
    expect(new Map(kept.conversations.map(({ conversationId, entries }) => [conversationId, entries]))).toEqual(
      new Map([
        [shared, [said("a1", "ada asks", ada), answered("t1", "to ada", { platform: "test", id: "ada" })]],
        [direct, [said("a2", "ada in private", ada)]],
      ]),
    );
    expect(JSON.parse(JSON.stringify(kept))).toEqual(kept);
    expect(await history.exportAuthor("test", "nobody")).toMatchObject({ conversations: [] });
  });

  test("a person's conversations are those in which they wrote, the latest first", async () => {
    const later = createHistory({ open, inTurn: turnsOver(open), ttlMs: 600_000, log: silent, now: () => 6_000 });
    const latest = uniqueId("latest");
    await nextMillisecond();
    await later.append(latest, { ...said("a3", "ada again", ada), at: 6_000 });
    expect((await history.conversationsOf("test", "ada"))[0]).toBe(latest);
    await nextMillisecond();
    await later.append(direct, { ...said("a4", "ada in private again", ada), at: 7_000 });
    const found = await history.conversationsOf("test", "ada");
    expect(found.slice(0, 2)).toEqual([direct, latest]);
    expect(new Set(found)).toEqual(new Set([latest, direct, shared]));
    expect(await history.conversationsOf("test", "nobody")).toEqual([]);
  });

  test("erasing a person removes every trace of them from the history, and keeps everything of others", async () => {
    expect(await history.forgetAuthor("test", "ada")).toBe(3);
    expect(await idsIn(shared)).toEqual(["b1", "t2", "x1"]);
    expect(await idsIn(direct)).toEqual([]);
    for (const id of ["a1", "t1", "p1", "p2", "a2"]) expect(await history.find(id)).toBeUndefined();
    expect(await history.find("p3")).toEqual({ conversationId: shared, entryId: "t2" });
    expect(await history.exportAuthor("test", "ada")).toMatchObject({ conversations: [] });
    const rest = await dump();
    // The remaining entries with this id belong to the other person.
    for (const trace of ["ada asks", "to ada", "private", "by:test:ada", '"test","id":"ada"'])
      expect(rest).not.toContain(trace);
    expect(rest).toContain("ben asks");
    expect(await history.forgetAuthor("test", "ada")).toBe(0);
  });

  test("erasing a person from the history follows edits and replacements", async () => {
    await history.edit("a1", "ada changed it", []);
    await history.append(shared, answered("t1", "to ada, longer", ada), ["p9"]);
    expect(await history.forgetAuthor("test", "ada")).toBe(3);
    expect(await history.find("p9")).toBeUndefined();
    expect(await dump()).not.toMatch(/changed it|longer/);
  });

  test("erasing a person from the history also erases their unreadable entries", async () => {
    const keyv = open("history");
    const { first } = (await keyv.get(`h:${encodeURIComponent(shared)}`)) as { first: number };
    const key = `e:${encodeURIComponent(shared)}:${first + 2}`;
    await keyv.put({ key, value: { secret: "to ada" }, ttlMs: 600_000, owner: ada });
    expect(await history.forgetAuthor("test", "ada")).toBe(3);
    expect(await dump()).not.toMatch(/to ada|ada asks|private|"p1"/);
    expect(await history.find("p1")).toBeUndefined();
  });

  test("erasing a person keeps an entry whose author changed from that person to another", async () => {
    const keyv = open("history");
    const { first } = (await keyv.get(`h:${encodeURIComponent(shared)}`)) as { first: number };
    const key = `e:${encodeURIComponent(shared)}:${first + 1}`;
    const value = await keyv.get(key);
    await keyv.put({ key, value, ttlMs: 600_000, owner: ada });
    await keyv.put({ key, value, ttlMs: 600_000, owner: ben });
    expect(
      (await history.exportAuthor("test", "ada")).conversations
        .flatMap(({ entries }) => entries.map(({ id }) => id))
        .sort(),
    ).toEqual(["a1", "a2", "t1"]);
    expect(await history.forgetAuthor("test", "ada")).toBe(3);
    expect(await idsIn(shared)).toEqual(["b1", "t2", "x1"]);
  });

  test("the history exports and erases a person with many entries in few steps", async () => {
    for (let index = 0; index < 250; index++) await history.append(shared, said(`m${index}`, "x", ada));
    let steps = 0;
    const counted = (namespace: string) => {
      const keyv = open(namespace);
      for (const name of ["get", "getMany", "set", "put", "write", "delete", "deleteMany"] as const) {
        const call = keyv[name].bind(keyv) as (...values: unknown[]) => Promise<never>;
        Object.assign(keyv, {
          [name]: (...values: unknown[]) => {
            steps += 1;
            return call(...values);
          },
        });
      }
      return keyv;
    };
    const observed = createHistory({
      open: counted,
      inTurn: turnsOver(counted),
      ttlMs: 600_000,
      log: silent,
      now: () => 5_000,
    });
    const kept = await observed.exportAuthor("test", "ada");
    expect(kept.conversations.flatMap(({ entries }) => entries)).toHaveLength(253);
    expect(await observed.forgetAuthor("test", "ada")).toBe(253);
    // One step per entry would make more than a thousand steps.
    expect(steps).toBeLessThan(50);
  });

  test("erasing a person from the history works for many entries, and during appends of others", async () => {
    const many = Array.from({ length: 300 }, (_, index) => said(`m${index}`, "x", index % 2 === 0 ? ada : ben));
    for (const entry of many) await history.append(shared, entry);
    const appends = Promise.all(many.map((_, index) => history.append(shared, said(`n${index}`, "y", ben))));
    expect(await history.forgetAuthor("test", "ada")).toBe(153);
    await appends;
    expect((await history.exportAuthor("test", "ben")).conversations[0]?.entries.length).toBe(452);
  });
}

describe("a person in the history on SQLite", () => {
  let stores: Stores;
  beforeAll(() => {
    stores = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
  });
  afterAll(() => stores.close());
  authorsContract(() => ({
    open: stores.open,
    dump: async () =>
      JSON.stringify(
        database
          .prepare("SELECT * FROM keyv")
          .all()
          .map(({ key, value }) => `${String(key)} ${String(value)}`),
      ).replaceAll('\\"', '"'),
  }));
});

describe.skipIf(isRedisMissing)("a person in the history on Redis (needs redis-server)", () => {
  let redis: RedisServer;
  let stores: Stores;
  beforeAll(async () => {
    redis = await startRedis();
    stores = createStores({ redisUrl: redis.url, database, log: silent }, NO_RIGHT);
  });
  afterAll(async () => {
    await stores?.close();
    await redis?.stop();
  });
  authorsContract(() => ({
    open: stores.open,
    async dump() {
      const lines: string[] = [];
      for await (const [key, value] of stores.open("history").iterator?.(undefined) ?? []) {
        lines.push(`${key} ${JSON.stringify(value)}`);
      }
      return lines.join("\n");
    },
  }));
});
