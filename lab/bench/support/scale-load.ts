import { setTimeout as sleep } from "node:timers/promises";
import { type Arrivals, steady } from "../../pacing/scenarios.ts";
import type { RunningService } from "../../support/service.ts";
import { describeMachine } from "./lifecycle.ts";
import { type RedisUse, readRedisUse } from "./redis-use.ts";
import { type Cluster, describeLoad, openCluster, readCpuMs, readRssKib } from "./scale-cluster.ts";
import { formatNumber, summarize } from "./statistics.ts";
import { formatTable } from "./table.ts";

const WORKERS = [1, 2, 4];
/** An answer that arrives all at once. */
const SHORT = steady(40, 10_000);
const TURNS = 120;
const TURNS_AT_ONCE = 24;
const STREAM_TOKENS = 300;
const STREAM_RATE = 30;
const STREAMS = [20, 60];
const SAMPLE_MS = 250;
const STANDING = [0, 100, 300];
const QUESTIONS = 12;
/** After this time, every background conversation shows its first message. */
const SETTLE_MS = 12_000;
const WHOLE_ANSWER = steady(360, 30);
/** Slow enough to last for the whole bench, and fast enough not to count as stalled. */
const STANDING_ANSWER = steady(40, 0.2);
const IDLE_MS = 3_000;
const NOT_MEASURED = "no time";
/** No row starts later than this. The table marks missing rows. */
const ROWS_MS = 150_000;
/** After this pause, all work after an answer is done, for example storing its record. */
const TAIL_MS = 1_500;

interface Spent {
  ingressMs: number;
  workersMs: number;
  /** Without the idle use. */
  redis: RedisUse;
  /** Use per second of all processes without questions. */
  idle: RedisUse;
  durationMs: number;
}

/** Measures how many short questions one, two and four workers answer one after another. */
export async function benchTurns(): Promise<string> {
  const rows: string[][] = [];
  for (const workers of WORKERS) {
    if (isLate()) {
      rows.push([String(workers), NOT_MEASURED]);
      continue;
    }
    await using resources = new AsyncDisposableStack();
    const cluster = await openCluster(resources, workers, () => SHORT);
    await runAtOnce(cluster, "warm", 2 * TURNS_AT_ONCE);
    const latencies: number[] = [];
    const spent = await watch(cluster, async () => {
      latencies.push(...(await runAtOnce(cluster, "turn", TURNS)));
    });
    rows.push([
      String(workers),
      formatNumber((TURNS / spent.durationMs) * 1_000, 1),
      formatNumber(summarize(latencies).median, 0),
      ...toCosts(spent, TURNS),
      describeLoad(),
    ]);
  }
  return [
    `turns: ${TURNS} questions for 40 tokens that come at once, ${TURNS_AT_ONCE} at a time, in 20 workspaces of a simulated Slack,`,
    `which takes its part of the same cores; one ingress; ${describeMachine()}. CPU of each kind of process for a turn.`,
    "",
    formatTable(
      ["workers", "turns/s", "ms to the end", "ingress, ms", "workers, ms", "Redis, ms", "commands", "KB", ""],
      rows,
    ),
  ].join("\n");
}

/** Measures how many answers one, two and four workers stream in parallel. */
export async function benchStreams(): Promise<string> {
  const rows: string[][] = [];
  for (const workers of WORKERS) {
    if (isLate()) {
      rows.push([String(workers), NOT_MEASURED]);
      continue;
    }
    await using resources = new AsyncDisposableStack();
    const cluster = await openCluster(resources, workers, (question) =>
      question.startsWith("warm") ? SHORT : steady(STREAM_TOKENS, STREAM_RATE),
    );
    await runAtOnce(cluster, "warm", TURNS_AT_ONCE);
    for (const streams of STREAMS) {
      rows.push(isLate() ? [String(workers), String(streams), NOT_MEASURED] : await measureStreams(cluster, streams));
    }
  }
  return [
    `streams: so many answers of ${STREAM_TOKENS} tokens at ${STREAM_RATE} a second at once, in 20 workspaces of a simulated Slack, which takes`,
    `its part of the same cores; one ingress; ${describeMachine()}. CPU for each second of a stream. Memory: the`,
    "highest RSS of all workers less that before. Final lag: from the last token to all of it being shown.",
    "",
    formatTable(
      [
        "workers",
        "streams",
        "held by each",
        "final lag, s",
        "ingress, ms",
        "workers, ms",
        "Redis, ms",
        "commands",
        "KB",
        "KiB a stream",
        "",
      ],
      rows,
    ),
  ].join("\n");
}

function isLate(): boolean {
  return performance.now() > ROWS_MS;
}

async function measureStreams(cluster: Cluster, streams: number): Promise<string[]> {
  const readAll = () => cluster.workers.reduce((sum, worker) => sum + readRssKib(worker), 0);
  const before = readAll();
  let [peak, held]: [number, number[]] = [before, []];
  const over = new AbortController();
  const watching = (async () => {
    while (!over.signal.aborted) {
      peak = Math.max(peak, readAll());
      const now = await Promise.all(cluster.workers.map(readStreams));
      if (sum(now) >= sum(held)) held = now;
      await sleep(SAMPLE_MS);
    }
  })();
  const lags: number[] = [];
  const spent = await watch(cluster, async () => {
    const asked = Array.from({ length: streams }, (_, index) => cluster.ask(`stream ${streams} ${index}`));
    const lastTokenMs = ((STREAM_TOKENS - 1) / STREAM_RATE) * 1_000;
    await Promise.all(
      asked.map(async (one) => {
        const shownAt = await cluster.untilAnswered(one);
        lags.push(shownAt - cluster.upstream.startOf(one.question) - lastTokenMs);
      }),
    );
  });
  over.abort();
  await watching;
  return [
    String(cluster.workers.length),
    String(streams),
    held.join("+"),
    formatNumber(summarize(lags).median / 1_000, 2),
    ...toCosts(spent, (streams * STREAM_TOKENS) / STREAM_RATE),
    formatNumber((peak - before) / streams, 0),
    describeLoad(),
  ];
}

/**
 * Measures the Redis use of one question, from its acceptance to the record of its answer, while other conversations
 * are answered.
 */
export async function benchQuestions(): Promise<string> {
  const rows: string[][] = [];
  for (const standing of STANDING) {
    if (isLate()) {
      rows.push([String(standing), NOT_MEASURED]);
      continue;
    }
    await using resources = new AsyncDisposableStack();
    const cluster = await openCluster(resources, 1, planQuestion);
    await runAtOnce(cluster, "warm", TURNS_AT_ONCE);
    for (let index = 0; index < standing; index++) cluster.ask(`standing ${index}`);
    while ((await readStreams(cluster.workers[0])) < standing) await sleep(SAMPLE_MS);
    await sleep(SETTLE_MS);
    const { redis, idle } = await watch(cluster, async () => {
      const asked = Array.from({ length: QUESTIONS }, (_, index) => cluster.ask(`whole ${index}`));
      await Promise.all(asked.map(cluster.untilAnswered));
    });
    const [commands, kib, ms] = [redis.commands, redis.bytes / 1_024, redis.cpuMs].map((sum) => sum / QUESTIONS);
    rows.push([
      String(standing),
      formatNumber(commands ?? 0, 0),
      formatNumber(kib ?? 0, 1),
      formatNumber(ms ?? 0, 1),
      formatNumber(idle.commands / 2, 1),
      formatNumber(idle.bytes / 2_048, 1),
      describeLoad(),
    ]);
  }
  return [
    `questions: ${QUESTIONS} questions at once whose answers take 12 s, in 20 workspaces of a simulated Slack, while so many other`,
    `conversations are being answered; one ingress and one worker; ${describeMachine()}. Of Redis, for a question without what goes`,
    "on anyway; commands inside scripts are counted. Idle: what goes on anyway, for each of the two processes.",
    "",
    formatTable(["running", "commands", "KiB", "Redis, ms", "idle: commands/s", "KiB/s", ""], rows),
  ].join("\n");
}

function planQuestion(question: string): Arrivals {
  if (question.startsWith("warm")) return SHORT;
  return question.startsWith("standing") ? STANDING_ANSWER : WHOLE_ANSWER;
}

/** Resolves to the milliseconds from each question to its complete answer. */
async function runAtOnce(cluster: Cluster, name: string, count: number): Promise<number[]> {
  const durations: number[] = [];
  let asked = 0;
  await Promise.all(
    Array.from({ length: TURNS_AT_ONCE }, async () => {
      while (asked < count) {
        const from = Date.now();
        durations.push((await cluster.untilAnswered(cluster.ask(`${name} ${asked++}`))) - from);
      }
    }),
  );
  return durations;
}

/** Measures the processor time and the Redis use of all processes for the work, without the idle use. */
async function watch({ ingress, workers, connection }: Cluster, work: () => Promise<void>): Promise<Spent> {
  const sumCpu = (services: readonly RunningService[]) => sum(services.map(readCpuMs));
  await sleep(TAIL_MS);
  const idleFrom = await readRedisUse(connection);
  await sleep(IDLE_MS);
  const from = await readRedisUse(connection);
  const before = { ingressMs: sumCpu([ingress]), workersMs: sumCpu(workers) };
  const startedAt = performance.now();
  await work();
  const durationMs = performance.now() - startedAt;
  await sleep(TAIL_MS);
  const to = await readRedisUse(connection);
  return {
    ingressMs: sumCpu([ingress]) - before.ingressMs,
    workersMs: sumCpu(workers) - before.workersMs,
    redis: to.since(from).without(from.since(idleFrom)),
    idle: from.since(idleFrom).perSecond(),
    durationMs,
  };
}

function toCosts({ ingressMs, workersMs, redis }: Spent, count: number): string[] {
  return [
    formatNumber(ingressMs / count, 1),
    formatNumber(workersMs / count, 1),
    formatNumber(redis.cpuMs / count, 1),
    formatNumber(redis.commands / count, 0),
    formatNumber(redis.bytes / 1_024 / count, 1),
  ];
}

async function readStreams(service: RunningService | undefined): Promise<number> {
  if (service === undefined) return 0;
  const text = await (await fetch(`${service.url}/metrics`)).text();
  return Number(/^palaver_upstream_streams_open (\d+)/m.exec(text)?.[1] ?? 0);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
