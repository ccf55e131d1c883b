import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { type Line, openLine } from "../test/support/fault-loop/line.ts";
import { type LaunchedService, launchService, makeDataDir } from "../test/support/service.ts";
import type { Role } from "./plan.ts";

const AHEAD = pathToFileURL(`${import.meta.dirname}/ahead.ts`).href;
/** The pause before a process that ended by itself is started again. */
const RESTART_PAUSE_MS = 500;

export interface ClusterOptions {
  /** The role of each process. */
  roles: readonly Role[];
  /** Milliseconds by which each process's clock is ahead; as many as there are processes. */
  aheadMs: readonly number[];
  platformOrigin: string;
  gatewayUrl: string;
  redisUrl: string;
  /** Further environment variables of a process that reaches the platform at this address. */
  env(platformOrigin: string): Record<string, string>;
  /** Modules that each process loads first, as addresses. */
  preload?: readonly string[];
  /** Told of everything that happens to a process. */
  note(what: string): void;
}

/** One process from its start to its end. */
export interface Life {
  /** `p2.3`: the third one of the second process. */
  readonly name: string;
  readonly slot: number;
  /** The addresses under which it is known to those it calls. */
  readonly hosts: readonly string[];
  readonly lines: readonly string[];
  readonly startedAtMs: number;
  endedAtMs: number | undefined;
  /** A description of its end, if it ended by itself. */
  crash: string | undefined;
}

/** Real processes of the service that are started again whenever they end, each on a network of its own. */
export interface Cluster {
  /** All that there have been. */
  readonly lives: readonly Life[];
  /** Resolves to the address of a process when all of them are ready. */
  ready(): Promise<string>;
  /** Ends a process; it is started again after a while. Resolves when it is ready. */
  end(slot: number, signal: "SIGKILL" | "SIGTERM", againMs: number): Promise<void>;
  stop(slot: number): void;
  goOn(slot: number): void;
  slowRedis(slot: number, delayMs: number): void;
  cutRedis(slot: number): void;
  /** The number of open events by the processes' own count; undefined where one does not answer. */
  countOpen(): Promise<number | undefined>;
  close(): Promise<void>;
}

interface Slot {
  dataDir: Awaited<ReturnType<typeof makeDataDir>>;
  life: Life;
  service: LaunchedService;
  redis: Line;
  platform: Line;
  gateway: Line;
  url: string | undefined;
  ready: PromiseWithResolvers<string>;
  /** Resolves when its successor is ready, or there is none. */
  next: PromiseWithResolvers<unknown>;
  isEnding: boolean;
  againMs: number;
}

export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { roles, aheadMs, platformOrigin, gatewayUrl, redisUrl, env, preload = [], note } = options;
  const lives: Life[] = [];
  const slots: Slot[] = [];
  let isClosing = false;

  async function launch(index: number, before: Slot | undefined): Promise<Slot> {
    const dataDir = before?.dataDir ?? (await makeDataDir());
    const [platform, gateway, redis] = await Promise.all([platformOrigin, gatewayUrl, redisUrl].map(openLine));
    if (platform === undefined || gateway === undefined || redis === undefined) throw new Error("There is no network.");
    const imports = [...preload, ...(aheadMs[index] === 0 ? [] : [AHEAD])];
    const name = `p${index + 1}.${lives.filter(({ slot }) => slot === index).length + 1}`;
    const service = launchService(dataDir.path, {
      ...env(platform.origin),
      ROLE: roles[index] ?? "all",
      GATEWAY_BASE_URL: gateway.origin,
      REDIS_URL: toUrlAt(redisUrl, redis.origin),
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
      againMs: RESTART_PAUSE_MS,
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
    // A start without Redis ends with a sentence, as it should.
    if (!slot.isEnding && !isClosing && slot.url !== undefined)
      life.crash = `${life.name} ended by itself with ${code}`;
    note(`${life.name} has ended with ${code}`);
    await Promise.all([platform, gateway, redis].map((line) => line.close()));
    if (isClosing) return;
    // A process that ends before it was ever ready would only end again.
    if (life.name.endsWith(".1") && slot.url === undefined && !slot.isEnding) {
      slot.ready.reject(new Error(`${life.name} did not start:\n${life.lines.join("\n")}`));
      return;
    }
    await sleep(slot.againMs);
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
    async end(index, signal, againMs) {
      const slot = at(index);
      if (slot.life.endedAtMs !== undefined || slot.isEnding) return;
      Object.assign(slot, { isEnding: true, againMs });
      note(`${slot.life.name} gets ${signal}`);
      await slot.service.end(signal);
      await slot.next.promise;
    },
    stop(index) {
      note(`${at(index).life.name} is stopped`);
      signal(at(index), "SIGSTOP");
    },
    goOn(index) {
      note(`${at(index).life.name} goes on`);
      signal(at(index), "SIGCONT");
    },
    slowRedis: (index, delayMs) => at(index).redis.slow(delayMs),
    cutRedis: (index) => at(index).redis.drop(),
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
  // Its number may be another program's by now.
  if (life.endedAtMs === undefined) process.kill(service.pid, name);
}

async function countAt({ url }: Slot): Promise<number | undefined> {
  if (url === undefined) return undefined;
  const answer = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined);
  const text = await answer?.text();
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
