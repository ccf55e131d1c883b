import { setTimeout as sleep } from "node:timers/promises";
import type { MessageEvent } from "../../src/port/events.ts";
import { connectToRedis, type RedisConnection } from "../../src/store/redis-connection.ts";
import { message } from "../support/events.ts";
import { silent } from "../support/log.ts";
import { startRedis } from "../support/redis.ts";
import { openRedisQueue } from "../support/redis-queue.ts";
import { describeMachine, runBench } from "./support/lifecycle.ts";
import { measureNewcomers, NEWCOMER_HEAD } from "./support/newcomer.ts";
import { type RedisUse, readRedisUse } from "./support/redis-use.ts";
import { formatNumber, summarize } from "./support/statistics.ts";
import { formatTable } from "./support/table.ts";

/** Number of conversations, each in its own workspace, that the processes answer during the whole measurement. */
const STANDING = [0, 100, 300, 1_000];
const PROCESSES = 4;
const PLACES = 1_000;
const TURNS = 120;
const AT_ONCE = 4;
const IDLE_MS = 5_000;
const LIMIT_MS = 150_000;
const HEAD = [
  "conversations",
  "commands a turn",
  "KiB a turn",
  "Redis, ms a turn",
  "to the work, ms",
  "idle process: commands/s",
  "KiB/s",
  "Redis, % of a core",
];

interface Measured {
  standing: number;
  /** Redis use per turn, without the idle use. */
  turn: RedisUse;
  /** Redis use per second and process without turns. */
  idle: RedisUse;
  /** Milliseconds from accepting an event until its work starts. */
  latencyMs: number;
}

const [what] = process.argv.slice(2);
const given = process.argv.slice(2).map(Number);

await runBench(async (resources) => {
  const redis = await startRedis();
  resources.defer(redis.stop);
  if (what === "newcomer") {
    const rows = [await measureNewcomers("embedded", {}), await measureNewcomers("Redis", { REDIS_URL: redis.url })];
    return [
      `queue newcomer: ${describeMachine()}; from a new person's first question to its request to the gateway, while`,
      "40 questions of one person in one channel get slow answers or wait.",
      "",
      formatTable(NEWCOMER_HEAD, rows),
    ].join("\n");
  }
  const measured: Measured[] = [];
  for (const standing of given.length > 0 ? given : STANDING) measured.push(await measure(redis.url, standing));
  return [
    `queue: ${PROCESSES} queues of ${PLACES} slots in one process, ${describeMachine()}.`,
    `The Redis cost of one empty turn, each in a new conversation of a new workspace, ${AT_ONCE} at a time,`,
    "while the given number of other conversations are being answered. Includes commands inside scripts.",
    "",
    formatTable(HEAD, measured.map(toCells)),
  ].join("\n");
}, LIMIT_MS);

async function measure(url: string, standing: number): Promise<Measured> {
  await using resources = new AsyncDisposableStack();
  const watch = connectToRedis(url, silent);
  resources.defer(watch.close);
  await watch.run(() => watch.client.flushAll());
  const started = new Map<string, PromiseWithResolvers<number>>();
  const whenStarted = (key: string) => {
    const entry = started.get(key) ?? Promise.withResolvers<number>();
    started.set(key, entry);
    return entry;
  };
  const isOver = Promise.withResolvers<void>();
  const queues = Array.from({ length: PROCESSES }, () => openQueue(url, resources));
  resources.defer(async () => isOver.resolve());
  for (const queue of queues) {
    queue.start({
      take: (waiting) => waiting.slice(0, 1),
      async work(events) {
        const [event] = events;
        if (event === undefined) return events;
        whenStarted(event.key).resolve(performance.now());
        if (event.conversationId.startsWith("bench:standing")) await isOver.promise;
        return events;
      },
      onAccepted: () => {},
    });
  }
  let asked = 0;
  /** Resolves to the milliseconds until the work started. */
  async function ask(kind: "standing" | "short"): Promise<number> {
    const event = toEvent(kind, asked++);
    const from = performance.now();
    await queues[asked % PROCESSES]?.accept(event);
    return (await whenStarted(event.key).promise) - from;
  }
  // Wait for all processes, because moving partitions would distort the measurement.
  while (queues.some((queue) => queue.processes() < PROCESSES)) await sleep(100);
  await sleep(1_000);
  await runAtOnce(standing, () => ask("standing"));
  await runAtOnce(AT_ONCE, () => ask("short"));
  await sleep(1_000);
  const idleFrom = await readRedisUse(watch);
  await sleep(IDLE_MS);
  const busyFrom = await readRedisUse(watch);
  const latencies = await runAtOnce(TURNS, () => ask("short"));
  const busyTo = await readRedisUse(watch);
  const idle = busyFrom.since(idleFrom);
  return {
    standing,
    turn: busyTo.since(busyFrom).without(idle).per(TURNS),
    idle: idle.per((IDLE_MS / 1_000) * PROCESSES),
    latencyMs: summarize(latencies).median,
  };
}

function openQueue(url: string, resources: AsyncDisposableStack) {
  const connection: RedisConnection = connectToRedis(url, silent);
  resources.defer(connection.close);
  const queue = openRedisQueue({ connection, maxActive: PLACES, cutMs: 100 });
  resources.defer(() => queue.close(0));
  return queue;
}

function toEvent(kind: string, index: number): MessageEvent {
  const id = `${kind}-${index}`;
  const reply = { platform: "bench", channelId: `C${index}`, workspaceId: `T${index}` };
  return message("What is tea?", { conversationId: `bench:${id}`, author: { id, name: "Ada" }, reply });
}

async function runAtOnce(count: number, task: () => Promise<number>): Promise<number[]> {
  const results: number[] = [];
  let left = count;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (left-- > 0) results.push(await task());
    }),
  );
  return results;
}

function toCells({ standing, turn, idle, latencyMs }: Measured): string[] {
  return [
    formatNumber(standing, 0),
    formatNumber(turn.commands, 0),
    formatNumber(turn.bytes / 1_024, 0),
    formatNumber(turn.cpuMs, 1),
    formatNumber(latencyMs, 1),
    formatNumber(idle.commands, 0),
    formatNumber(idle.bytes / 1_024, 0),
    formatNumber(idle.cpuMs / 10, 1),
  ];
}
