import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { message } from "../../lab/support/events.ts";
import { isRedisMissing } from "../../lab/support/redis.ts";
import { openRedisQueue } from "../../lab/support/redis-queue.ts";
import { PROCESS_ENV } from "../../lab/support/service.ts";
import { untilAborted } from "../../src/concurrency/deadlines.ts";
import type { InboundEvent } from "../../src/port/events.ts";
import type { Work } from "../../src/port/right.ts";
import { laneOf } from "../../src/queue/event-lane.ts";
import { readGivenUp } from "../../src/queue/given-up.ts";
import { PART_KEYS, partitionOf } from "../../src/queue/partition.ts";
import { eventually } from "../support/eventually.ts";
import { shareRedis } from "../support/shared-redis.ts";

type Line = Record<string, unknown>;

describe.skipIf(isRedisMissing)("the queue on Redis, with processes that die or freeze (needs redis-server)", () => {
  const shared = shareRedis({ isKept: true });

  /** The output of all processes, in the order of arrival. */
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

  const { journal, begun, members } = PART_KEYS;
  /** All tests have one conversation. */
  const partition = partitionOf("test:a");
  const countWaiting = () => shared.connection.client.xLen(journal(partition));

  /** Accepts events like an ingress, but works on none. */
  function openIngress() {
    const queue = openRedisQueue({ connection: shared.connection, maxActive: 1 });
    onTestFinished(() => queue.close(0));
    return queue;
  }

  test("another process resumes the work of a killed one", async () => {
    const first = await startProcess("first");
    await openIngress().accept(message("write"));
    await eventually(() => said("call", "first").length).toBeGreaterThan(3);
    await startProcess("second");
    first.kill("SIGKILL");
    await eventually(() => said("call", "second").length).toBeGreaterThan(3);
    expect(said("begun").map((line) => line["isResumed"])).toEqual([false, true]);
  });

  test.each([false, true])(
    "the process that resumes aborted work knows that the work was resumed, and does not take later work for resumed (with progress: %s)",
    async (hasProgressed) => {
      const taken: boolean[] = [];
      const countBegun = () => shared.connection.client.hVals(begun(partition));
      const open = (isDone: boolean) => {
        const queue = openRedisQueue({ connection: shared.connection, maxActive: 1 });
        onTestFinished(() => queue.close(0));
        const onWork = async (events: InboundEvent[], { signal, right }: Work) => {
          taken.push(right.isResumed);
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
      await eventually(countBegun).toEqual(["1"]);
      await first.close(0);
      const second = open(true);
      await eventually(() => taken).toEqual([false, true]);
      await second.accept(message("thanks", { conversationId: "test:a" }));
      await eventually(() => taken).toEqual([false, true, false]);
      await eventually(countBegun).toEqual([]);
    },
  );

  /** A file that the processes wait for. `give` creates it. */
  async function makeSign(): Promise<{ path: string; give(): void }> {
    const folder = await mkdtemp(join(tmpdir(), "palaver-sign-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const path = join(folder, "given");
    return { path, give: () => writeFileSync(path, "") };
  }

  /** One process freezes, another one takes over, and then the first one wakes up. */
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
    // The lane stays with the new owner.
    const calls = said("call", "second").length;
    await eventually(() => said("call", "second").length).toBeGreaterThan(calls + 3);
    expect(said("aborted", "second")).toEqual([]);
  }

  test("a stopped process writes nothing after another one took over", async () => {
    await takeOver(
      "write",
      (first) => first.kill("SIGSTOP"),
      (first) => first.kill("SIGCONT"),
    );
  });

  test("a process with a blocked event loop writes nothing after another one took over", async () => {
    const { path, give } = await makeSign();
    await takeOver(`block ${path}`, () => {}, give);
  });

  test("a process that was stopped for long continues if no other one took over", async () => {
    const first = await startProcess("first");
    const end = await makeSign();
    await openIngress().accept(message(`write until ${end.path}`));
    await eventually(() => said("call").length).toBeGreaterThan(3);
    first.kill("SIGSTOP");
    const lastBeats = async () => Object.values(await shared.connection.client.hGetAll(members)).map(Number.parseFloat);
    // Longer than any process waits before it takes over a partition.
    await eventually(async () => Date.now() - Math.max(...(await lastBeats()))).toBeGreaterThan(3_000);
    first.kill("SIGCONT");
    const calls = said("call").length;
    await eventually(() => said("call").length).toBeGreaterThan(calls + 3);
    end.give();
    await eventually(() => countWaiting()).toBe(0);
    // The process's output and its writes to Redis arrive independently.
    await eventually(() => said("stored").length).toBe(1);
    expect(said("begun")).toHaveLength(1);
    expect(said("aborted")).toEqual([]);
  });

  test.each([
    ["silent", async () => shared.redis.freeze(), async () => shared.redis.thaw()],
    ["dead", () => shared.redis.kill(), () => shared.redis.restart()],
  ])("work continues to its end while Redis is %s, and no other process starts it", async (_, goAway, comeBack) => {
    await startProcess("first");
    const end = await makeSign();
    await openIngress().accept(message(`write until ${end.path}`));
    await eventually(() => said("call", "first").length).toBeGreaterThan(3);
    await startProcess("second");
    await goAway();
    const awaySince = Date.now();
    // Three times as long as a silent process keeps its partitions.
    const callsLate = () => said("call", "first").filter(({ heardAt }) => Number(heardAt) > awaySince + 9_000);
    try {
      await eventually(() => callsLate().length).toBeGreaterThan(3);
    } finally {
      await comeBack();
    }
    await eventually(() => shared.connection.client.isReady).toBe(true);
    end.give();
    await eventually(() => countWaiting()).toBe(0);
    // The process's output and its writes to Redis arrive independently.
    await eventually(() => said("stored").length).toBe(1);
    expect(said("begun")).toHaveLength(1);
    expect(said("aborted")).toEqual([]);
  });

  test("the queue gives up an event that kills every process, reports it, and keeps it for inspection", async () => {
    await openIngress().accept(message("die"));
    for (let death = 1; death <= 6; death++) {
      await startProcess(`process ${death}`);
      await eventually(() => said("begun").length).toBe(death);
    }
    await startProcess("last");
    await eventually(() => said("givenUp")).toMatchObject([{ givenUp: "die", by: "last" }]);
    await eventually(() => countWaiting()).toBe(0);
    expect(await readGivenUp(shared.connection.client)).toMatchObject([{ kind: "message", laneId: "test:a" }]);
  });
});
