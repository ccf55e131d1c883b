import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { untilAborted } from "../../../src/concurrency/deadlines.ts";
import { isTakenUp } from "../../../src/concurrency/fence.ts";
import type { InboundEvent } from "../../../src/port/events.ts";
import { laneOf, toWork } from "../../../src/queue/event-lane.ts";
import { KEYS } from "../../../src/queue/redis/keys.ts";
import { createRedisLanes } from "../../../src/queue/redis/lanes.ts";
import { createRedisQueue } from "../../../src/queue/redis/redis-queue.ts";
import { StoreError } from "../../../src/store/outage.ts";
import type { RedisClient } from "../../../src/store/redis-connection.ts";
import { message } from "../../support/events.ts";
import { eventually } from "../../support/eventually.ts";
import { silent } from "../../support/log.ts";
import { quickWorker } from "../../support/queue-contract.ts";
import { isRedisMissing } from "../../support/redis.ts";
import { PROCESS_ENV } from "../../support/service.ts";
import { shareRedis } from "../../support/shared-redis.ts";

type Line = Record<string, unknown>;

describe.skipIf(isRedisMissing)("the queue on Redis, where processes die or stand still (needs redis-server)", () => {
  const shared = shareRedis({ isKept: true });

  /** Told by all processes, in the order in which it came. */
  let lines: Line[] = [];
  beforeEach(() => {
    lines = [];
  });
  const said = (word: string, by?: string) => lines.filter((line) => word in line && (by ?? line["by"]) === line["by"]);

  async function startProcess(name: string): Promise<ChildProcess> {
    const child = spawn(process.execPath, ["test/support/queue-process.ts", shared.redis.url, name], {
      env: PROCESS_ENV,
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    createInterface({ input: child.stdout }).on("line", (line) =>
      lines.push({ ...(JSON.parse(line) as Line), heardAt: Date.now() }),
    );
    await eventually(() => said("ready", name).length).toBe(1);
    return child;
  }

  const lanes = () => createRedisLanes(shared.connection, Date.now, "test", silent);

  /** Accepts as a process does that takes events in and works on none. */
  function openIngress() {
    const queue = createRedisQueue({ connection: shared.connection, maxActive: 1, now: Date.now, log: silent });
    onTestFinished(() => queue.close(0));
    return queue;
  }

  test("an event whose bell was never rung is found", async () => {
    await startProcess("first");
    await lanes().accept(message("quick"));
    await eventually(() => said("begun").length).toBe(1);
    await eventually(() => lanes().countWaiting()).toBe(0);
  });

  test("a lane whose bell was lost with its process's attempts is found", async () => {
    const ingress = openIngress();
    await ingress.accept(message("quick"));
    await eventually(() => shared.connection.client.exists("palaver:bells:lanes:wait")).toBe(1);
    // As if BullMQ had given the job up: it is gone, and what waits in its lane is not.
    for await (const keys of shared.connection.client.scanIterator({ MATCH: "palaver:bells:*" })) {
      if (keys.length > 0) await shared.connection.client.del(keys);
    }
    await startProcess("first");
    await eventually(() => lanes().countWaiting()).toBe(0);
  });

  test("a lane is found that has a place of which its process does not know", async () => {
    const { client, ...connection } = shared.connection;
    let isLost = false;
    // Redis carries the change of the places out, and its answer comes too late.
    const evaluate: RedisClient["eval"] = async (script, options) => {
      const answer = await client.eval(script, options);
      if (isLost || options?.keys?.length !== 4 || options.keys[0] !== KEYS.version) return answer;
      isLost = true;
      throw new StoreError("Redis did not answer within 2 s.");
    };
    // Methods of the client know no other `this`.
    const get = (_: RedisClient, name: keyof RedisClient) => {
      const value: unknown = name === "eval" ? evaluate : client[name];
      return typeof value === "function" ? (value.bind(client) as unknown) : value;
    };
    const unlucky = { ...connection, client: new Proxy(client, { get }) };
    const queue = createRedisQueue({ connection: unlucky, maxActive: 1, now: Date.now, log: silent });
    onTestFinished(() => queue.close(0));
    const done: string[] = [];
    queue.start(quickWorker((events) => void done.push(...events.map(({ key }) => key))));
    const event = message("hello");
    await queue.accept(event);
    await eventually(() => done).toEqual([event.key]);
    expect(isLost).toBe(true);
  });

  test("killed, a process is replaced by another one", async () => {
    const first = await startProcess("first");
    await openIngress().accept(message("write"));
    await eventually(() => said("call", "first").length).toBeGreaterThan(3);
    await startProcess("second");
    first.kill("SIGKILL");
    await eventually(() => said("call", "second").length).toBeGreaterThan(3);
    expect(said("begun").map((line) => line["isTakenUp"])).toEqual([false, true]);
  });

  test.each([false, true])(
    "cut in order, work is known to have been begun by whoever goes on with it, and by nobody who comes after its end (having progressed: %s)",
    async (hasProgressed) => {
      const taken: boolean[] = [];
      const countBegun = () => shared.connection.client.hVals(KEYS.begun);
      const open = (isDone: boolean) => {
        const queue = createRedisQueue({ connection: shared.connection, maxActive: 1, now: Date.now, log: silent });
        onTestFinished(() => queue.close(0));
        const onWork = async (events: InboundEvent[], signal: AbortSignal) => {
          taken.push(isTakenUp());
          const [event] = events;
          if (hasProgressed && event !== undefined) queue.progressed(laneOf(event).workId);
          return isDone ? events : untilAborted(new Promise<never>(() => {}), signal);
        };
        queue.start({ take: (waiting) => waiting.slice(0, 1), work: onWork, onAccepted: () => {} });
        return queue;
      };
      const first = open(false);
      await first.accept(message("hello", { conversationId: "test:a" }));
      await eventually(() => taken).toEqual([false]);
      await eventually(countBegun).toEqual([hasProgressed ? "0" : "1"]);
      await first.close(0);
      const second = open(true);
      await eventually(() => taken).toEqual([false, true]);
      await second.accept(message("thanks", { conversationId: "test:a" }));
      await eventually(() => taken).toEqual([false, true, false]);
      await eventually(countBegun).toEqual([]);
    },
  );

  test("work that was begun and cut after another process had looked at its lane is known there to have been begun", async () => {
    const { client } = shared.connection;
    const [looked, isToGoOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const evaluate: typeof client.eval = async (script, options) => {
      const answer = await client.eval(script, options);
      if (options?.keys?.[0] === KEYS.begun && options.keys.length === 3) {
        looked.resolve();
        await isToGoOn.promise;
      }
      return answer;
    };
    const get = (target: typeof client, name: string | symbol): unknown => {
      const value: unknown = name === "eval" ? evaluate : Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    };
    const connection = { ...shared.connection, client: new Proxy(client, { get }) };
    const queue = createRedisQueue({ connection, maxActive: 1, now: Date.now, log: silent });
    onTestFinished(() => queue.close(0));
    const event = message("hello", { conversationId: "test:a" });
    await queue.accept(event);
    const taken: boolean[] = [];
    const onWork = async (events: InboundEvent[]) => {
      taken.push(isTakenUp());
      return events;
    };
    queue.start({ take: (waiting) => [...waiting], work: onWork, onAccepted: () => {} });
    await looked.promise;
    const other = lanes();
    const { id } = laneOf(event);
    const lane = await other.take(id);
    if (lane === undefined) throw new Error("The lane is taken.");
    await other.begin(id, lane.token, lane.waiting, { work: { ...toWork(event), isSuspect: false }, worker: "other" });
    await other.uncount(event.key);
    await other.release(id, lane.token);
    isToGoOn.resolve();
    await eventually(() => taken).toEqual([true]);
  });

  test("while work lasts, its lease is prolonged, and nobody else begins it", async () => {
    await startProcess("first");
    await startProcess("second");
    await openIngress().accept(message("write"));
    await eventually(() => said("begun").length).toBe(1);
    // Twice as long as a lease.
    const until = performance.now() + 6_000;
    await eventually(() => (performance.now() > until ? "over" : said("call").length)).toBe("over");
    expect(said("begun")).toHaveLength(1);
    expect(said("aborted")).toEqual([]);
  });

  /** A file that processes look for, and that is there from when it is given. */
  async function makeSign(): Promise<{ path: string; give(): void }> {
    const folder = await mkdtemp(join(tmpdir(), "palaver-sign-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const path = join(folder, "given");
    return { path, give: () => writeFileSync(path, "") };
  }

  /** A process stands still, another one takes over, and the first one moves again. */
  async function takeOver(text: string, stop: (first: ChildProcess) => void, goOn: (first: ChildProcess) => void) {
    const first = await startProcess("first");
    await openIngress().accept(message(text));
    await eventually(() => said("begun", "first").length).toBe(1);
    await startProcess("second");
    stop(first);
    await eventually(() => said("begun", "second").length).toBe(1);
    const before = said("call", "first").length;
    goOn(first);
    await eventually(() => said("fenced", "first").length).toBe(1);
    expect(said("call", "first")).toHaveLength(before);
    expect(said("stored", "first")).toEqual([]);
    expect([said("takenOver", "first").length, said("takenOver", "second").length]).toEqual([1, 0]);
    // The lane stays with the one that took it over.
    const calls = said("call", "second").length;
    await eventually(() => said("call", "second").length).toBeGreaterThan(calls + 3);
    expect(said("aborted", "second")).toEqual([]);
  }

  test("a process that was stopped writes nothing more once another one has taken over", async () => {
    await takeOver(
      "write",
      (first) => first.kill("SIGSTOP"),
      (first) => first.kill("SIGCONT"),
    );
  });

  test("a process whose event loop stood still writes nothing more once another one has taken over", async () => {
    const { path, give } = await makeSign();
    await takeOver(`block ${path}`, () => {}, give);
  });

  test("a process stopped for longer than its lease goes on where nobody has taken over", async () => {
    const first = await startProcess("first");
    const end = await makeSign();
    await openIngress().accept(message(`write until ${end.path}`));
    await eventually(() => said("call").length).toBeGreaterThan(3);
    first.kill("SIGSTOP");
    await eventually(() => shared.connection.client.exists(KEYS.lease("test:a"))).toBe(0);
    first.kill("SIGCONT");
    const calls = said("call").length;
    await eventually(() => said("call").length).toBeGreaterThan(calls + 3);
    end.give();
    await eventually(() => lanes().countWaiting()).toBe(0);
    // What a process says comes another way than what Redis holds.
    await eventually(() => said("stored").length).toBe(1);
    expect(said("begun")).toHaveLength(1);
    expect(said("aborted")).toEqual([]);
  });

  test.each([
    ["silent", async () => shared.redis.freeze(), async () => shared.redis.thaw()],
    ["dead", () => shared.redis.kill(), () => shared.redis.restart()],
  ])("while Redis is %s, work goes on to its end, and nobody else begins it", async (_, goAway, comeBack) => {
    await startProcess("first");
    const end = await makeSign();
    await openIngress().accept(message(`write until ${end.path}`));
    await eventually(() => said("call", "first").length).toBeGreaterThan(3);
    await startProcess("second");
    await goAway();
    const awaySince = Date.now();
    // Three times as long as a lease.
    const callsLate = () => said("call", "first").filter(({ heardAt }) => Number(heardAt) > awaySince + 9_000);
    try {
      await eventually(() => callsLate().length).toBeGreaterThan(3);
    } finally {
      await comeBack();
    }
    await eventually(() => shared.connection.client.isReady).toBe(true);
    end.give();
    await eventually(() => lanes().countWaiting()).toBe(0);
    // What a process says comes another way than what Redis holds.
    await eventually(() => said("stored").length).toBe(1);
    expect(said("begun")).toHaveLength(1);
    expect(said("aborted")).toEqual([]);
  });

  test("asked to end, a process gives its lane to another one at once", async () => {
    const first = await startProcess("first");
    await openIngress().accept(message("write"));
    await eventually(() => said("call", "first").length).toBeGreaterThan(3);
    await startProcess("second");
    await eventually(async () => (await shared.connection.client.pubSubNumSub([KEYS.channel]))[KEYS.channel]).toBe(2);
    first.kill("SIGTERM");
    await eventually(() => said("call", "second").length).toBeGreaterThan(3);
    expect(said("aborted", "first")).toMatchObject([{ reason: "shutdown" }]);
  });

  test("an event of which every process dies is given up, reported, and kept for inspection", async () => {
    await openIngress().accept(message("die"));
    for (let death = 1; death <= 6; death++) {
      await startProcess(`process ${death}`);
      await eventually(() => said("begun").length).toBe(death);
    }
    await startProcess("last");
    await eventually(() => said("givenUp")).toMatchObject([{ givenUp: "die", by: "last" }]);
    await eventually(() => lanes().countWaiting()).toBe(0);
    const [kept] = await shared.connection.client.lRange(KEYS.givenUp, 0, -1);
    expect(JSON.parse(kept ?? "{}")).toMatchObject({ kind: "message", laneId: "test:a" });
  });

  test("an accepted event is announced to every process, first to the one that works on its conversation", async () => {
    await startProcess("first");
    await startProcess("second");
    const ingress = openIngress();
    await ingress.accept(message("write"));
    await eventually(() => said("begun").length).toBe(1);
    const listening = async () => (await shared.connection.client.pubSubNumSub([KEYS.channel]))[KEYS.channel];
    await eventually(listening).toBe(2);
    const event = message("more");
    await ingress.accept(event);
    const told = () => lines.filter((line) => line["noticed"] === event.key);
    await eventually(() => told().length).toBe(2);
  });

  test("the messages of one conversation are worked on in order by four processes, each once", async () => {
    for (const name of ["a", "b", "c", "d"]) await startProcess(name);
    const ingress = openIngress();
    const texts = Array.from({ length: 100 }, (_, index) => `quick ${index}`);
    for (const text of texts) await ingress.accept(message(text));
    await eventually(() => said("begun").length).toBe(texts.length);
    const inOrder = said("begun").toSorted((one, other) => Number(one["clock"]) - Number(other["clock"]));
    expect(inOrder.map(({ begun }) => begun)).toEqual(texts);
  });
});
