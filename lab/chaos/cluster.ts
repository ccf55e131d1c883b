import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { type LaunchedService, launchService, makeDataDir } from "../support/service.ts";
import { type Line, openLine } from "./line.ts";
import type { Role } from "./plan.ts";

const AHEAD = pathToFileURL(`${import.meta.dirname}/ahead.ts`).href;
/** Pause before a process restarts after an unexpected exit. */
const RESTART_PAUSE_MS = 500;

export interface ClusterOptions {
  roles: readonly Role[];
  /** How far each process's clock is ahead, in milliseconds. */
  aheadMs: readonly number[];
  platformOrigin: string;
  gatewayUrl: string;
  /** Undefined: each process stores everything in its own SQLite database. */
  redisUrl: string | undefined;
  /** More environment variables for a process that reaches the platform at this origin. */
  env(platformOrigin: string): Record<string, string>;
  /** URLs of modules that every process loads first. */
  preload?: readonly string[];
  /** Called for each event in the life of a process. */
  note(what: string): void;
}

/** One process from its start to its exit. */
export interface Life {
  /** `p2.3` is the third life of the second process. */
  readonly name: string;
  readonly slot: number;
  /**
   * Hosts and ports under which this life reaches the platform and the gateway. They show which process made a call.
   */
  readonly hosts: readonly string[];
  readonly lines: readonly string[];
  readonly startedAtMs: number;
  endedAtMs: number | undefined;
  /** A description of the exit, if it was unexpected. */
  crash: string | undefined;
}

/** Runs real processes of the service and restarts each one that exits. Each life has its own network connections. */
export interface Cluster {
  readonly lives: readonly Life[];
  /** Resolves to the first process's URL when all processes are ready. */
  ready(): Promise<string>;
  /** Ends a process and restarts it after `restartMs`. Resolves when the new process is ready. */
  end(slot: number, signal: "SIGKILL" | "SIGTERM", restartMs: number): Promise<void>;
  stop(slot: number): void;
  resume(slot: number): void;
  slowRedis(slot: number, delayMs: number): void;
  disconnectRedis(slot: number): void;
  dataDir(slot: number): string;
  /** Number of open events, as the processes count them; undefined if a process does not respond. */
  countOpen(): Promise<number | undefined>;
  close(): Promise<void>;
}

interface Slot {
  dataDir: Awaited<ReturnType<typeof makeDataDir>>;
  life: Life;
  service: LaunchedService;
  redis: Line | undefined;
  platform: Line;
  gateway: Line;
  url: string | undefined;
  ready: PromiseWithResolvers<string>;
  /** Settled when the next life is ready or the cluster closes. */
  next: PromiseWithResolvers<unknown>;
  isEnding: boolean;
  restartMs: number;
}

export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { roles, aheadMs, platformOrigin, gatewayUrl, redisUrl, env, preload = [], note } = options;
  const lives: Life[] = [];
  const slots: Slot[] = [];
  let isClosing = false;

  async function launch(index: number, before: Slot | undefined): Promise<Slot> {
    const dataDir = before?.dataDir ?? (await makeDataDir());
    const [platform, gateway] = await Promise.all([openLine(platformOrigin), openLine(gatewayUrl)]);
    const redis = redisUrl === undefined ? undefined : await openLine(redisUrl);
    const imports = [...preload, ...(aheadMs[index] === 0 ? [] : [AHEAD])];
    const name = `p${index + 1}.${lives.filter(({ slot }) => slot === index).length + 1}`;
    const service = launchService(dataDir.path, {
      ...env(platform.origin),
      ROLE: roles[index] ?? "all",
      GATEWAY_BASE_URL: gateway.origin,
      ...(redisUrl !== undefined && redis !== undefined && { REDIS_URL: toUrlAt(redisUrl, redis.origin) }),
      CHAOS_AHEAD_MS: String(aheadMs[index]),
      CHAOS_LIFE: name,
      ...(imports.length > 0 && { NODE_OPTIONS: imports.map((url) => `--import=${url}`).join(" ") }),
    });
    const life: Life = {
      name,
      slot: index,
      hosts: [platform, gateway].map(({ origin }) => new URL(origin).host),
      lines: service.lines,
      startedAtMs: Date.now(),
      endedAtMs: undefined,
      crash: undefined,
    };
    lives.push(life);
    const ready = before === undefined || before.url !== undefined ? Promise.withResolvers<string>() : before.ready;
    const slot: Slot = {
      dataDir,
      life,
      service,
      redis,
      platform,
      gateway,
      url: undefined,
      ready,
      next: Promise.withResolvers<unknown>(),
      isEnding: false,
      restartMs: RESTART_PAUSE_MS,
    };
    slots[index] = slot;
    note(`${life.name} starts`);
    before?.next.resolve(ready.promise);
    void watch(slot);
    return slot;
  }

  async function watch(slot: Slot): Promise<void> {
    const { service, life, ready } = slot;
    const url = await Promise.race([service.ready, service.exited]).catch(() => 0);
    if (life.endedAtMs === undefined && typeof url === "string" && url.startsWith("http")) {
      slot.url = url;
      note(`${life.name} is ready`);
      ready.resolve(url);
    }
    await onExit(slot, await service.exited);
  }

  async function onExit(slot: Slot, code: number | string): Promise<void> {
    const { life, platform, gateway, redis } = slot;
    life.endedAtMs = Date.now();
    // A process that exits before it is ready did not crash, because without Redis it should exit.
    if (!slot.isEnding && !isClosing && slot.url !== undefined)
      life.crash = `${life.name} exited unexpectedly with ${code}`;
    note(`${life.name} exited with ${code}`);
    await Promise.all([platform.close(), gateway.close(), redis?.close()]);
    if (isClosing) return;
    // Does not restart a process that was never ready, because it would exit again.
    if (life.name.endsWith(".1") && slot.url === undefined && !slot.isEnding) {
      slot.ready.reject(new Error(`${life.name} did not start:\n${life.lines.join("\n")}`));
      return;
    }
    await sleep(slot.restartMs);
    if (!isClosing) await launch(life.slot, slot);
  }

  function at(index: number): Slot {
    const slot = slots[index];
    if (slot === undefined) throw new Error(`There is no process ${index}.`);
    return slot;
  }

  for (const index of aheadMs.keys()) await launch(index, undefined);
  return {
    lives,
    async ready() {
      const urls = await Promise.all(aheadMs.map((_, index) => at(index).ready.promise));
      return urls[0] ?? "";
    },
    async end(index, signal, restartMs) {
      const slot = at(index);
      if (slot.life.endedAtMs !== undefined || slot.isEnding) return;
      Object.assign(slot, { isEnding: true, restartMs });
      note(`${slot.life.name} gets ${signal}`);
      await slot.service.end(signal);
      await slot.next.promise;
    },
    stop(index) {
      note(`${at(index).life.name} is paused`);
      signal(at(index), "SIGSTOP");
    },
    resume(index) {
      note(`${at(index).life.name} resumes`);
      signal(at(index), "SIGCONT");
    },
    slowRedis: (index, delayMs) => at(index).redis?.slow(delayMs),
    disconnectRedis: (index) => at(index).redis?.drop(),
    dataDir: (index) => at(index).dataDir.path,
    async countOpen() {
      const counts = await Promise.all(slots.map(countAt));
      return counts.reduce<number | undefined>(
        (sum, count) => (sum === undefined || count === undefined ? undefined : sum + count),
        0,
      );
    },
    async close() {
      isClosing = true;
      for (const { next } of slots) next.resolve(undefined);
      await Promise.all(slots.map(({ service }) => service.end("SIGKILL")));
      await Promise.all(slots.map(({ dataDir }) => dataDir.remove()));
    },
  };
}

function signal({ service, life }: Slot, name: NodeJS.Signals): void {
  // After the exit, another program can have this pid.
  if (life.endedAtMs === undefined) process.kill(service.pid, name);
}

async function countAt({ url }: Slot): Promise<number | undefined> {
  if (url === undefined) return undefined;
  const response = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined);
  const text = await response?.text();
  const found = [...(text ?? "").matchAll(/^palaver_queue_(?:waiting|active) (\d+)/gm)].map(([, count]) =>
    Number(count),
  );
  return found.length === 2 ? Math.max(...found) : undefined;
}

function toUrlAt(url: string, origin: string): string {
  const moved = new URL(url);
  moved.host = new URL(origin).host;
  return moved.href;
}
