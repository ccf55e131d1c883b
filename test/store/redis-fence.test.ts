import { createHash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { isRedisMissing, type RedisServer, startRedis } from "../../lab/support/redis.ts";
import { type Fence, FencedError, NO_RIGHT, type Right, withFence } from "../../src/port/right.ts";
import { evalFenced } from "../../src/store/fenced-script.ts";
import { createStores, type Stores } from "../../src/store/keyv.ts";
import { StoreError } from "../../src/store/outage.ts";
import { countCommands } from "../support/shared-redis.ts";

const LOCK = `palaver:turn:${createHash("sha256").update("one").digest("base64url")}`;

describe.skipIf(isRedisMissing)("a store that processes share (needs redis-server)", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  function open() {
    const stores = createStores({ redisUrl: redis.url, database: new DatabaseSync(":memory:"), log: silent }, NO_RIGHT);
    onTestFinished(stores.close);
    return { ...stores, keyv: stores.open("trial"), held: (fence: Fence) => stores.under(withFence(NO_RIGHT, fence)) };
  }

  test("a shared store refuses writes of one or many keys, and erasures, under a lost fence", async () => {
    const { keyv, shared, held } = open();
    const fence: Fence = { key: "owner", value: "1", check: async () => {} };
    await shared?.run(() => shared.client.set("owner", "1"));
    const stores = held(fence);
    const fenced = stores.open("trial");
    const owner = { platform: "test", id: "ada" };
    await fenced.put({ key: "a", value: "mine", ttlMs: 60_000, owner });
    await fenced.setMany([{ key: "b", value: "mine" }]);
    expect(await fenced.delete("b")).toBe(true);
    await shared?.run(() => shared.client.set("owner", "2"));
    const writes: Array<() => Promise<unknown>> = [
      () => fenced.set("a", "stale"),
      () => fenced.setMany([{ key: "a", value: "stale" }]),
      () => fenced.delete("a"),
      () => fenced.delete(["a"]),
      () => fenced.put({ key: "a", value: "stale", ttlMs: 60_000, owner }),
      () => stores.eraseOwner(owner),
    ];
    for (const write of writes) await expect(write()).rejects.toThrow(FencedError);
    expect(await keyv.get("a")).toBe("mine");
    expect(await fenced.get("a")).toBe("mine");
  });

  test("a shared store rewrites an entry under two fences with one read and one write", async () => {
    const { keyv, shared, under } = open();
    if (shared === undefined) throw new Error("There is no Redis.");
    const { client, run } = shared;
    await run(() => client.mSet({ owner: "1", lane: "1" }));
    const fences = ["owner", "lane"].map((key): Fence => ({ key, value: "1", check: async () => {} }));
    const right = fences.reduce<Right>(withFence, NO_RIGHT);
    const fenced = () => under(right).open("trial").put({ key: "note", value: "more", isRewrite: true });
    expect(await fenced()).toBe(false);
    await keyv.put({ key: "note", value: "some", ttlMs: 60_000 });
    const commands = await countCommands(client, async () => expect(await fenced()).toBe(true));
    expect(commands).toMatchObject({ mget: 1, set: 1 });
    for (const name of ["get", "exists"]) expect(commands).not.toHaveProperty(name);
    expect(await keyv.get("note")).toBe("more");
  });

  test("a write arrives although its fence is renamed meanwhile", async () => {
    const { shared } = open();
    if (shared === undefined) throw new Error("There is no Redis.");
    const { client, run } = shared;
    await run(() => client.mSet({ owner: "1", kept: "1" }));
    let isKept = false;
    const fence: Fence = {
      get key() {
        return isKept ? "kept" : "owner";
      },
      value: "1",
      check: async () => {},
    };
    const write = () => evalFenced(client, "return 'taken'", [], [], withFence(NO_RIGHT, fence));
    expect(await write()).toBe("taken");
    await run(() => client.set("owner", "2"));
    const written = write();
    isKept = true;
    expect(await written).toBe("taken");
    await run(() => client.set("kept", "2"));
    await expect(write()).rejects.toThrow(FencedError);
  });

  test("a change that lost its turn rejects as an outage, and a write that lost its right as a FencedError", async () => {
    const { keyv, shared, held } = open();
    const beLate = async (openInTurn: Stores["open"]) => {
      for await (const keys of shared?.client.scanIterator({ MATCH: "*:turn:*" }) ?? []) await shared?.client.del(keys);
      await openInTurn("trial").set("late", "mine");
    };
    const work = (check: Fence["check"]) => held({ key: "work", value: "1", check }).inTurn("two", beLate);
    await shared?.run(() => shared.client.set("work", "1"));
    await expect(work(async () => {})).rejects.toThrow(StoreError);
    await expect(work(() => Promise.reject(new FencedError("another's")))).rejects.toThrow(FencedError);
    expect(await keyv.get("late")).toBeUndefined();
  });

  describe("an `inTurn` change under a right that covers the change", () => {
    /** Adds to a list with `inTurn`. `pause` is the time between reading and writing. */
    const add = ({ inTurn }: Stores, item: string, pause = async (): Promise<void> => {}) =>
      inTurn("one", async (openInTurn) => {
        const keyv = openInTurn("trial");
        const list = (await keyv.get<string[]>("covered")) ?? [];
        await pause();
        await keyv.set("covered", [...list, item]);
      });
    const covering = (key = () => "owner"): Fence => ({
      get key() {
        return key();
      },
      value: "1",
      check: async () => {},
      covers: (name) => name === "one",
    });
    async function setUp() {
      const [owner, other] = [open(), open()];
      await owner.keyv.get("connected");
      await owner.keyv.clear();
      await owner.shared?.client.del(LOCK);
      await owner.shared?.client.mSet({ owner: "1", kept: "1" });
      return { owner, other, read: () => owner.keyv.get<string[]>("covered") };
    }

    test("an `inTurn` change under a right sets no lock", async () => {
      const { owner, read } = await setUp();
      await add(owner.held(covering()), "own");
      expect(await read()).toEqual(["own"]);
      expect(await owner.shared?.client.exists(LOCK)).toBe(0);
    });

    test("an `inTurn` change under a right runs again if another process took the lock meanwhile, so that neither change is lost", async () => {
      const { owner, other, read } = await setUp();
      let runs = 0;
      const interrupt = async () => void (++runs === 1 && (await add(other, "theirs")));
      await add(owner.held(covering()), "own", interrupt);
      expect([runs, await read()]).toEqual([2, ["theirs", "own"]]);
    });

    test("an `inTurn` change under a right waits for another process that has the lock", async () => {
      const { owner, other, read } = await setUp();
      const ended = Promise.withResolvers<void>();
      const hasLock = Promise.withResolvers<void>();
      const theirs = add(other, "theirs", async () => {
        hasLock.resolve();
        await ended.promise;
      });
      await hasLock.promise;
      const own = add(owner.held(covering()), "own", async () => ended.resolve());
      await Promise.all([theirs, own]);
      expect(await read()).toEqual(["theirs", "own"]);
    });

    test("an `inTurn` change runs again under the lock if its right is renamed meanwhile", async () => {
      const { owner, read } = await setUp();
      let key = "owner";
      let runs = 0;
      const rename = async () => void ([runs, key] = [runs + 1, "kept"]);
      await owner.shared?.client.set("owner", "2");
      await add(owner.held(covering(() => key)), "own", rename);
      expect([runs, await read()]).toEqual([2, ["own"]]);
      expect(await owner.shared?.client.get(LOCK)).toBe("-");
    });
  });

  test("a store keeps every `inTurn` change, whichever process makes the change", async () => {
    const processes = [open(), open(), open()];
    const changes = Array.from({ length: 60 }, (_, index) => {
      const { inTurn } = processes[index % processes.length] ?? open();
      return inTurn("one", async (openInTurn) => {
        const keyv = openInTurn("trial");
        await keyv.set("list", [...((await keyv.get<number[]>("list")) ?? []), index]);
      });
    });
    await Promise.all(changes);
    expect(await processes[0]?.keyv.get<number[]>("list")).toHaveLength(60);
  });
});
