import { setTimeout as sleep } from "node:timers/promises";
import { connectToRedis } from "../../src/store/redis-connection.ts";
import { type Figures, type Outcome, toFigures } from "../pacing/measure.ts";
import { type Arrivals, steady, TOKEN_UNITS } from "../pacing/scenarios.ts";
import { silent } from "../support/log.ts";
import { lookFor } from "../support/look-for.ts";
import { startRedis } from "../support/redis.ts";
import { makeDataDir, startService } from "../support/service.ts";
import { describeMachine, runBench } from "./support/lifecycle.ts";
import { startPacedUpstream, wordsOf } from "./support/paced-upstream.ts";
import { readRedisUse } from "./support/redis-use.ts";
import { benchInterrupts } from "./support/scale-interrupts.ts";
import { benchQuestions, benchStreams, benchTurns } from "./support/scale-load.ts";
import { openDiscordStage, openSlackStage, type ScaleStage } from "./support/scale-stages.ts";
import { formatNumber, summarize } from "./support/statistics.ts";
import { formatTable } from "./support/table.ts";

const PROCESSES = [0, 1, 2, 4] as const;
const STAGES = new Map<string, () => Promise<ScaleStage>>([
  ["native", () => openSlackStage(true)],
  ["fallback", () => openSlackStage(false)],
  ["discord", openDiscordStage],
]);
/** Benches that measure how much load several processes can handle, and what it costs. */
const LOADS = new Map<string, (resources: AsyncDisposableStack) => Promise<string>>([
  ["questions", benchQuestions],
  ["turns", benchTurns],
  ["streams", benchStreams],
  ["interrupts", benchInterrupts],
]);
/** When each question of a scenario is asked, in milliseconds from its start. */
const SCENARIOS = new Map<string, readonly number[]>([
  ["5 at once", Array.from({ length: 5 }, () => 0)],
  ["3 at once", Array.from({ length: 3 }, () => 0)],
  ["every 6 s for 60 s", Array.from({ length: 11 }, (_, index) => index * 6_000)],
]);
const ANSWER = steady(400, 60);
const WARM_ANSWER = steady(40, 60);
const IDLE_MS = 3_000;
const WAIT_MS = 60_000;
/** After this pause, all work after an answer is done, for example storing its record. */
const TAIL_MS = 1_500;
const LIMIT_MS = 230_000;
const HEAD = [
  "processes",
  "mean",
  "× one",
  "p95",
  "worst final",
  "429s",
  "wrong",
  "to the model, ms",
  "commands",
  "KB",
];

interface Measured {
  processes: number;
  figures: Figures;
  refused: number;
  wrong: number;
  /** Median time from a question to its request to the model. */
  latencyMs: number;
  /** Redis commands and bytes per turn. */
  commands: number;
  bytes: number;
}

const [, , platform = "native", scenario = "5 at once"] = process.argv;

await runBench(async (resources) => {
  const load = LOADS.get(platform);
  if (load !== undefined) return await load(resources);
  const open = STAGES.get(platform);
  const askedAt = SCENARIOS.get(scenario);
  if (open === undefined || askedAt === undefined)
    throw new Error(
      `Choose one of ${[...LOADS.keys(), ...STAGES.keys()].join(", ")}, and with the last three one of "${[...SCENARIOS.keys()].join('", "')}".`,
    );
  // Run the rows in parallel, so that the machine's load is the same for all.
  const measured = await Promise.all(PROCESSES.map((count) => measure(resources, count, open, askedAt)));
  const one = measured.find(({ processes }) => processes === 1)?.figures.mean ?? Number.NaN;
  return [
    `scale: ${platform}, ${scenario}, 400 tokens at 60 a second; ${describeMachine()}, all rows at the same time.`,
    "Lag of replies behind the model in seconds; Redis commands and bytes per turn. 0 processes: one process without Redis.",
    "",
    formatTable(
      HEAD,
      measured.map((row) => toCells(row, one)),
    ),
  ].join("\n");
}, LIMIT_MS);

async function measure(
  resources: AsyncDisposableStack,
  processes: number,
  open: () => Promise<ScaleStage>,
  askedAt: readonly number[],
): Promise<Measured> {
  const stage = await open();
  resources.defer(stage.close);
  const redis = await startRedis();
  resources.defer(redis.stop);
  const connection = connectToRedis(redis.url, silent);
  resources.defer(connection.close);
  const upstream = await startPacedUpstream((question) => (question.startsWith("warm") ? WARM_ANSWER : ANSWER));
  resources.defer(upstream.close);
  const services = await Promise.all(
    Array.from({ length: Math.max(1, processes) }, async () => {
      const { path: dataDir, remove } = await makeDataDir();
      resources.defer(remove);
      const gateway = { GATEWAY_BASE_URL: upstream.url, GATEWAY_API_KEY: "none", CHAT_MODEL: "paced" };
      const own = { ...gateway, LOCAL_CHAT: "off", DISCORD_THREADS: "off", ...stage.env };
      const service = await startService(dataDir, { ...own, ...(processes > 0 && { REDIS_URL: redis.url }) });
      resources.defer(async () => void (await service.end("SIGKILL")));
      return service;
    }),
  );

  async function ask(question: string, index: number) {
    stage.deliverTo(services[index % services.length]?.url ?? "");
    const at = Date.now();
    return { question, at, read: await stage.ask(question) };
  }

  async function untilShown(read: () => string, arrivals: Arrivals): Promise<void> {
    const last = wordsOf(arrivals).at(-1)?.trim() ?? "";
    if ((await lookFor(() => read().includes(last), WAIT_MS)) === undefined) throw new Error("An answer is missing.");
  }

  await untilShown((await ask("warm up", 0)).read.text, WARM_ANSWER);
  await sleep(TAIL_MS);
  const idleFrom = await readRedisUse(connection);
  await sleep(IDLE_MS);
  const from = await readRedisUse(connection);
  const asked = await Promise.all(
    askedAt.map(async (afterMs, index) => {
      await sleep(afterMs);
      const one = await ask(`question ${index}`, index);
      await untilShown(one.read.text, ANSWER);
      return one;
    }),
  );
  await sleep(TAIL_MS);
  const to = await readRedisUse(connection);
  const { commands, bytes } = to.since(from).without(from.since(idleFrom)).per(asked.length);
  const whole = wordsOf(ANSWER).join("").trimEnd();
  const outcomes = asked.map(({ question, read }): Outcome => {
    const startMs = upstream.startOf(question);
    const showings = read
      .states()
      .map(({ atMs, length }) => ({ at: atMs - startMs, tokens: Math.ceil(length / TOKEN_UNITS) }));
    return { arrivals: ANSWER, showings, calls: showings.length, refused: 0 };
  });
  return {
    processes,
    figures: toFigures(outcomes),
    refused: stage.countRefused(),
    wrong: asked.filter(({ read }) => read.text().replaceAll(/\s+/g, " ") !== whole.replaceAll(/\s+/g, " ")).length,
    latencyMs: summarize(asked.map(({ question, at }) => upstream.startOf(question) - at)).median,
    commands,
    bytes,
  };
}

function toCells(row: Measured, one: number): string[] {
  const { processes, figures, refused, wrong, latencyMs, commands, bytes } = row;
  return [
    String(processes),
    formatNumber(figures.mean, 2),
    formatNumber(figures.mean / one, 2),
    formatNumber(figures.p95, 2),
    formatNumber(figures.worstFinal, 2),
    String(refused),
    String(wrong),
    formatNumber(latencyMs, 0),
    formatNumber(commands, 0),
    formatNumber(bytes / 1_024, 0),
  ];
}
