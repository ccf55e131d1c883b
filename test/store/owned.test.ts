import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { isRedisMissing, type RedisServer, startRedis } from "../../lab/support/redis.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createStores, type Stores } from "../../src/store/keyv.ts";
import { countCommands } from "../support/shared-redis.ts";

const ada = { platform: "test", id: "ada" };
const ben = { platform: "test", id: "ben" };
const ttlMs = 600_000;

let count = 0;

/** The contract that both stores fulfil for entries that belong to people and conversations. */
function ownedContract(start: () => Stores) {
  let stores: Stores;
  let name: string;
  beforeEach(async () => {
    stores = start();
    name = `owned${count++}`;
    for (const owner of [ada, ben]) await stores.eraseOwner(owner);
  });
  const open = () => stores.open(name);
  const keysOf = async (of: Parameters<ReturnType<typeof open>["entriesOf"]>[0], namespace = name) =>
    (await Array.fromAsync(stores.open(namespace).entriesOf(of), ([key]) => key)).toSorted();

  test("a store finds entries with their values by owner and by conversation", async () => {
    await open().put({ key: "a", value: { x: 1 }, ttlMs, owner: ada, conversation: "one" });
    await open().put({ key: "b", value: [2], ttlMs, owner: [ada, ben], conversation: "two" });
    await open().put({ key: "c", value: "3", ttlMs, conversation: "one" });
    expect(await Array.fromAsync(open().entriesOf({ owner: ada }))).toEqual([
      ["a", { x: 1 }],
      ["b", [2]],
    ]);
    expect(await keysOf({ owner: ben })).toEqual(["b"]);
    expect(await keysOf({ conversation: "one" })).toEqual(["a", "c"]);
    expect(await keysOf({ owner: ada, conversation: "one" })).toEqual(["a"]);
    expect(await keysOf({ owner: { platform: "other", id: "ada" } })).toEqual([]);
    expect(await open().getMany(["a", "b", "c"])).toEqual([{ x: 1 }, [2], "3"]);
  });

  test("a store finds everything of a person in all namespaces, and who has entries", async () => {
    await open().put({ key: "a:1", value: 1, ttlMs, owner: ada });
    await stores.open(`${name}other:deep`).put({ key: "b", value: 2, ttlMs, owner: ada });
    expect(await keysOf({ owner: ada })).toEqual(["a:1"]);
    expect(await Array.fromAsync(stores.entriesOf(ada))).toEqual([
      { namespace: name, key: "a:1", value: 1 },
      { namespace: `${name}other`, key: "deep:b", value: 2 },
    ]);
    expect([...(await stores.owners("test"))]).toContain("ada");
  });

  test("a store lists the conversations with a common prefix", async () => {
    for (const conversation of ["slack:T1:C1:1", "slack:T1:C2:1", "slack:T10:C1:1"]) {
      await open().put({ key: conversation, value: 1, ttlMs, conversation });
    }
    expect((await Array.fromAsync(stores.conversations("slack:T1:"))).toSorted()).toEqual([
      "slack:T1:C1:1",
      "slack:T1:C2:1",
    ]);
  });

  test("an erasure removes everything of a person, and nothing of others", async () => {
    await open().put({ key: "a", value: "canary", ttlMs, owner: ada });
    await open().put({ key: "b", value: 1, ttlMs, owner: ben });
    await stores.open(`${name}:in`).put({ key: "c", value: "canary", ttlMs, owner: [ben, ada] });
    expect(await stores.eraseOwner(ada)).toBe(2);
    expect(await open().getMany(["a", "b", "in:c"])).toEqual([undefined, 1, undefined]);
    expect(await keysOf({ owner: ben })).toEqual(["b"]);
    expect(await stores.eraseOwner(ada)).toBe(0);
  });

  test("an erasure is limited to a conversation, to a person in it, or to a namespace", async () => {
    const entry = { value: 1, ttlMs };
    await open().write([
      { ...entry, key: "a", owner: ada, conversation: "here" },
      { ...entry, key: "b", owner: ben, conversation: "here" },
      { ...entry, key: "c", owner: ada, conversation: "there" },
    ]);
    await stores.open(`${name}other`).put({ ...entry, key: "d", owner: ada, conversation: "here" });
    expect(await open().eraseOf({ owner: ada, conversation: "here" })).toBe(1);
    expect(await open().getMany(["a", "b", "c"])).toEqual([undefined, 1, 1]);
    expect(await stores.open(`${name}other`).has("d")).toBe(true);
    expect(await stores.eraseConversation("here")).toBe(2);
    expect(await keysOf({ owner: ada })).toEqual(["c"]);
  });

  test("an entry stays when the person it belonged to before is erased", async () => {
    await open().put({ key: "persona", value: "ada's", ttlMs, owner: ada });
    await open().put({ key: "persona", value: "ben's", ttlMs, owner: ben });
    await open().put({ key: "plain", value: "ada's", ttlMs, owner: ada });
    await open().set("plain", "nobody's", ttlMs);
    expect(await keysOf({ owner: ada })).toEqual([]);
    expect(await stores.eraseOwner(ada)).toBe(0);
    expect(await open().getMany(["persona", "plain"])).toEqual(["ben's", "nobody's"]);
    expect(await keysOf({ owner: ben })).toEqual(["persona"]);
  });

  test("a value cannot name an owner", async () => {
    await open().put({ key: "a", value: '{"of":["by:test:ben"],"value":1}', ttlMs, owner: ada });
    await open().put({ key: "b", value: { of: ["by:test:ada"] }, ttlMs, owner: ben });
    expect(await keysOf({ owner: ada })).toEqual(["a"]);
    await stores.eraseOwner(ada);
    expect(await open().getMany(["a", "b"])).toEqual([undefined, { of: ["by:test:ada"] }]);
  });

  test("a rewrite keeps an entry's time, and does not restore an erased entry", async () => {
    await open().put({ key: "a", value: 1, ttlMs: 200, owner: ada });
    expect(await open().put({ key: "a", value: 2, owner: ada, isRewrite: true })).toBe(true);
    expect(await keysOf({ owner: ada })).toEqual(["a"]);
    expect(await open().get("a")).toBe(2);
    await expect.poll(() => open().get("a")).toBeUndefined();
    expect(await open().put({ key: "a", value: 3, owner: ada, isRewrite: true })).toBe(false);
    await open().put({ key: "b", value: 1, ttlMs, owner: ada });
    await stores.eraseOwner(ada);
    const entries = [
      { key: "b", value: 2, ttlMs, owner: ada, isRewrite: true },
      { key: "c", value: 2, ttlMs },
    ] as const;
    expect(await open().write(entries, ["d"])).toBe(false);
    expect(await open().getMany(["b", "c"])).toEqual([undefined, undefined]);
  });

  test("a store appends to a list but not to an erased list, and storing the list again empties it", async () => {
    const list = { key: "a", value: null, ttlMs, owner: ada, conversation: "one", isList: true } as const;
    expect(await open().append("a", 1)).toBe(false);
    await open().put(list);
    expect([await open().append("a", { x: "1\n" }), await open().append("a", 2)]).toEqual([true, true]);
    expect(await open().readAppended("a")).toEqual([{ x: "1\n" }, 2]);
    await open().put(list);
    expect(await open().readAppended("a")).toEqual([]);
    expect(await open().eraseOf({ owner: ada, conversation: "one" })).toBe(1);
    expect([await open().append("a", 3), await open().readAppended("a")]).toEqual([false, []]);
    await open().put(list);
    await open().write([], ["a"]);
    expect(await open().append("a", 4)).toBe(false);
  });

  test("a store writes and removes in one step", async () => {
    await open().put({ key: "old", value: 1, ttlMs, owner: ada });
    await open().write([{ key: "new", value: 2, ttlMs, owner: ada }], ["old", "absent"]);
    expect(await keysOf({ owner: ada })).toEqual(["new"]);
  });

  test("an erasure includes entries that their owner writes meanwhile", async () => {
    const state = { isErasing: true };
    const entry = (index: number) => ({ key: `k${index}`, value: "canary", ttlMs, owner: ada });
    await open().write(Array.from({ length: 1_200 }, (_, index) => entry(index)));
    const write = async () => {
      let last = 0;
      for (let index = 2_000; state.isErasing && index < 2_050; index++) {
        await open().put(entry(index));
        last = index;
      }
      return last;
    };
    const writing = write();
    const erased = await stores.eraseOwner(ada).finally(() => (state.isErasing = false));
    const last = await writing;
    // The last entry may have been written after the erasure.
    const left = await keysOf({ owner: ada });
    expect(left.filter((key) => key !== `k${last}` && key !== `k${last - 1}`)).toEqual([]);
    expect(erased).toBeGreaterThanOrEqual(1_200);
  });

  test("a store reads and erases a person with 10,000 entries in a few steps", async () => {
    for (let from = 0; from < 10_000; from += 1_000) {
      const keys = Array.from({ length: 1_000 }, (_, index) => `k${from + index}`);
      await open().write(keys.map((key) => ({ key, value: key, ttlMs, owner: ada })));
    }
    expect(new Set(await keysOf({ owner: ada })).size).toBe(10_000);
    expect(await stores.eraseOwner(ada)).toBe(10_000);
    expect(await keysOf({ owner: ada })).toEqual([]);
  });

  test("a store refuses an entry with an owner but without a time to live", async () => {
    expect(() => open().put({ key: "a", value: 1, owner: ada })).toThrow("must expire");
  });
}

describe("entries that belong to people, on SQLite", () => {
  const database = new DatabaseSync(":memory:");
  let stores: Stores;
  beforeAll(() => {
    stores = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
  });
  afterAll(() => stores.close());
  ownedContract(() => stores);

  test("an erasure leaves nothing in the index", async () => {
    await stores.open("trace").put({ key: "a", value: 1, ttlMs, owner: { platform: "test", id: "canary" } });
    await stores.eraseOwner({ platform: "test", id: "canary" });
    await stores.open("trace").put({ key: "b", value: 1, ttlMs, owner: { platform: "test", id: "canary" } });
    await stores.open("trace").delete("b");
    expect(JSON.stringify(database.prepare("SELECT * FROM keyv_owner").all())).not.toContain("canary");
  });
});

describe.skipIf(isRedisMissing)("entries that belong to people, on Redis (needs redis-server)", () => {
  let redis: RedisServer;
  let stores: Stores;
  beforeAll(async () => {
    redis = await startRedis();
    stores = createStores({ redisUrl: redis.url, database: new DatabaseSync(":memory:"), log: silent }, NO_RIGHT);
  });
  afterAll(async () => {
    await stores?.close();
    await redis?.stop();
  });
  ownedContract(() => stores);

  const client = () => {
    if (stores.shared === undefined) throw new Error("There is no Redis.");
    return stores.shared.client;
  };

  test("a write with its index is one command", async () => {
    const { open } = stores;
    await open("counted").put({ key: "warm", value: 1, ttlMs, owner: ada });
    const write = () => open("counted").write([{ key: "a", value: 1, ttlMs, owner: ada, conversation: "one" }], ["b"]);
    const commands = await countCommands(client(), write);
    expect(commands).toMatchObject({ evalsha: 1 });
    for (const name of ["eval", "multi", "mset"]) expect(commands).not.toHaveProperty(name);
  });

  test("an index on Redis expires with its newest entry, and drops expired entries", async () => {
    const owner = { platform: "test", id: "brief" };
    const [index] = ["palaver:of:by:test:brief"];
    await stores.open("brief").put({ key: "a", value: 1, ttlMs: 30, owner });
    await stores.open("brief").put({ key: "b", value: 1, ttlMs: 60_000, owner });
    await expect.poll(() => stores.open("brief").has("a")).toBe(false);
    await stores.open("brief").put({ key: "c", value: 1, ttlMs: 120_000, owner });
    expect(await client().zRange(index, 0, -1)).toEqual(["palaver:brief:b", "palaver:brief:c"]);
    const leftMs = await client().pTTL(index);
    expect(leftMs).toBeGreaterThan(110_000);
    expect(leftMs).toBeLessThanOrEqual(132_000);
  });

  test("an erasure leaves nothing in any index", async () => {
    await stores.open("trace").put({ key: "a", value: 1, ttlMs, owner: [ada, ben], conversation: "trace" });
    await stores.eraseOwner(ada);
    const keys = await Array.fromAsync(client().scanIterator({ MATCH: "palaver:of:*" }));
    for (const key of keys.flat()) expect(await client().zScore(key, "palaver:trace:a")).toBeNull();
  });
});
