import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import type { Policy } from "../../../src/config/policy/policy-file.ts";
import { NO_RIGHT } from "../../../src/port/right.ts";
import type { Served } from "../../../src/sandbox/exchange.ts";
import { startSandbox } from "../../../src/sandbox/server.ts";
import { openDatabase } from "../../../src/store/database.ts";
import { createStores } from "../../../src/store/keyv.ts";
import { type Amounts, createUsage } from "../../../src/usage/usage.ts";
import { createRandom } from "../../pacing/random.ts";
import { startRedis } from "../../support/redis.ts";
import { makeDataDir, PROCESS_ENV } from "../../support/service.ts";
import type { WorkerOptions, WorkerReport } from "./counted-worker.ts";

export interface CountedOptions {
  turns: number;
  seed: number;
  /** Several processes share one Redis. */
  processes: number;
  /** The sandbox's speed. At a lower speed, crashes interrupt more answers. */
  tokensPerSecond: number;
  /** Mean time between two kills; Infinity for none. */
  killMs: number;
  policy: Policy;
  /** Time limit for the whole run. */
  limitMs: number;
}

export interface CountedResult {
  served: Served;
  counted: Amounts;
  kills: number;
  isDone: boolean;
}

const SCRIPT = join(import.meta.dirname, "counted-worker.ts");
const LOOK_MS = 200;
/**
 * The run is done after this many consecutive reports without open questions, because the queue updates its counts only
 * at intervals.
 */
const QUIET_LOOKS = 15;

/**
 * Kills and restarts processes while they answer questions. Adds up the usage that the processes counted and the usage
 * that the gateway served.
 */
export async function runCounted(options: CountedOptions): Promise<CountedResult> {
  const { turns, seed, processes, tokensPerSecond, killMs, policy, limitMs } = options;
  await using resources = new AsyncDisposableStack();
  const log = pino({ level: "silent" });
  const { path: folder, remove } = await makeDataDir();
  resources.defer(remove);
  const sandbox = await startSandbox({ host: "127.0.0.1", port: 0, log, tokensPerSecond, requestsPerMinute: Infinity });
  resources.defer(sandbox.close);
  const redis = processes > 1 ? await startRedis({ isKept: true }) : undefined;
  if (redis !== undefined) resources.defer(redis.stop);
  const pathOf = (slot: number) => join(folder, `${slot}.sqlite`);
  const places = Array.from({ length: processes }, (_, slot): Place => {
    const share = Math.ceil(turns / processes);
    const own = { from: slot * share, to: Math.min(turns, (slot + 1) * share) };
    const given = {
      path: pathOf(slot),
      ...(redis && { redisUrl: redis.url }),
      gatewayUrl: sandbox.url,
      policy,
      ...own,
    };
    return { given, child: undefined, report: undefined };
  });
  resources.defer(async () => void (await Promise.all(places.map(kill))));
  for (const place of places) launch(place);

  const random = createRandom(seed);
  const until = performance.now() + limitMs;
  let killAt = performance.now() + random.wait(killMs);
  let kills = 0;
  let quiet = 0;
  while (quiet < QUIET_LOOKS && performance.now() < until) {
    await sleep(LOOK_MS);
    const isDone = places.every(({ report }) => report?.isAccepted === true && report.open === 0);
    quiet = isDone ? quiet + 1 : 0;
    // Killing a process during its start tests nothing.
    const isReady = places.every(({ report }) => report !== undefined);
    if (!isReady) killAt = performance.now() + random.wait(killMs);
    if (isDone || !isReady || performance.now() < killAt) continue;
    killAt = performance.now() + random.wait(killMs);
    const place = random.pick(places);
    await kill(place);
    launch(place);
    kills += 1;
  }
  await Promise.all(places.map(kill));

  const database = openDatabase(pathOf(0));
  const { counters, close } = createStores({ redisUrl: redis?.url, database, log }, NO_RIGHT);
  resources.defer(async () => {
    await close();
    database.close();
  });
  const usage = createUsage({ counters, log, now: Date.now });
  const counted = await usage.readMonth("everyone");
  return { served: { ...sandbox.served }, counted, kills, isDone: quiet >= QUIET_LOOKS };
}

interface Place {
  given: WorkerOptions;
  child: ChildProcess | undefined;
  report: WorkerReport | undefined;
}

function launch(place: Place): void {
  const args = ["--disable-warning=ExperimentalWarning", SCRIPT, JSON.stringify(place.given)];
  const child = spawn(process.execPath, args, { env: PROCESS_ENV, stdio: ["ignore", "pipe", "inherit"] });
  place.child = child;
  place.report = undefined;
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (place.child === child) place.report = JSON.parse(line) as WorkerReport;
  });
}

async function kill(place: Place): Promise<void> {
  const { child } = place;
  place.child = undefined;
  place.report = undefined;
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
}
