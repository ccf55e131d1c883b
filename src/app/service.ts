import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import { readMcpFile } from "../config/mcp-servers.ts";
import { readBoundedText } from "../config/read-text.ts";
import { describeForVisitors, tokenForms } from "../config/summary.ts";
import { startHttpServer } from "../http/server.ts";
import type { McpServers } from "../mcp/servers.ts";
import { createTokenStore } from "../mcp/tokens.ts";
import { createMetrics, type Metrics } from "../metrics/metrics.ts";
import type { GatewayProblem, GatewayState } from "../models/health.ts";
import { createScheduler } from "../pacing/scheduler.ts";
import { readPolicyApart } from "../policy/read-apart.ts";
import type { Adapter } from "../port/adapter.ts";
import { NO_RIGHT } from "../port/right.ts";
import { createSeal } from "../port/seal.ts";
import type { Setup } from "../port/setup.ts";
import { openDatabase } from "../store/database.ts";
import { createStores, type Stores } from "../store/keyv.ts";
import { findExposed } from "../store/private-files.ts";
import { createTools } from "../tools/tools.ts";
import { createArrivals } from "./arrivals.ts";
import { openDashboard, type ProcessState } from "./dashboard.ts";
import { createEngine, type Engine } from "./engine.ts";
import { openMcpServers, openPolicyFile } from "./followed-files.ts";
import { openGateway } from "./gateway.ts";
import { readKeys } from "./keys.ts";
import { createPictureSources } from "./picture-sources.ts";
import { openPlatforms, type Platforms } from "./platforms.ts";
import { pseudonym } from "./pseudonym.ts";

/** Maximum time that running HTTP requests can delay the shutdown. */
const LAST_REQUESTS_MS = 1_000;
const STORE_PROBE_MS = 2_000;
/** Maximum time that a platform waits for another process to take over its connections. */
const HAND_OVER_MS = 10_000;

export interface Service {
  url: string;
  hasPage: boolean;
  engine: Engine;
  adapterOf(platform: string): Adapter;
  /** Resolves when every platform is connected. Rejects if a platform cannot connect or the service is closed. */
  run(): Promise<void>;
  /** Lets running work continue for `graceMs`. Later steps of the shutdown have their own timeouts. */
  close(graceMs: number): Promise<void>;
}

export interface ServiceOptions {
  config: Config;
  /** The environment of `config`. A changed MCP_CONFIG takes its placeholders from it. */
  env: NodeJS.ProcessEnv;
  log: Logger;
  /** Opens the setup steps that the page shows while no platform is connected. Absent: the page shows no setup. */
  openSetup?: () => Promise<Setup>;
  /** Called when a platform permanently refuses this bot. `isLast` is true if no other platform is left. */
  onFatal(reason: string, isLast: boolean): void;
  /** Called when the person at the terminal ends the chat. */
  onEnd(): void;
}

/**
 * Creates and connects all parts of the service: store, gateway, engine, platforms and HTTP server. Nothing works
 * before `run`.
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, log, openSetup, onEnd } = options;
  const [listens, works] = [config.role !== "worker", config.role !== "ingress"];
  let isClosing = false;
  let serviceUrl: string | undefined;
  const database = openStorage(config, log);
  // These stores are for tasks outside the queue. For queued work, the engine opens stores that write only while the
  // process owns that work.
  const stores = createStores({ redisUrl: config.redisUrl, database, log }, NO_RIGHT);
  const keys = await readKeys(stores);
  const scheduler = createScheduler({ now: () => performance.now() });
  const reachable = config.platforms.flatMap(({ module, config }) => module.fileOrigins?.(config) ?? []);
  const onProblem = (problem: GatewayProblem | undefined) => platforms.showGateway(problem);
  const gateway = await openGateway({ config, reachable, onProblem, log });
  const isStoreReachable = () => stores.isReachable(AbortSignal.timeout(STORE_PROBE_MS));
  const readState = (): ProcessState => {
    const { queue } = engine;
    return { adapters: [...platforms.adapters.values()], queue, isStoreReachable, gateway, scheduler };
  };
  const dashboard = openDashboard({ config, stores, database, readState, log });
  const metrics = dashboard.alsoCounts(createMetrics());
  const adapterOf = (platform: string) => findAdapter(platforms, platform);
  const sources = { config, adapterOf, stores, ownKey: keys.relayKey, serviceUrl: () => serviceUrl, log };
  const pictures = createPictureSources(sources);
  const policy = openPolicyFile({ ...config.policy, read: readPolicyApart, log });
  const mcp = works ? openMcp(options, stores) : undefined;
  const engine = createEngine({
    ...toEngineSettings(config),
    policy: policy.current,
    database,
    stores,
    gateway: gateway.client,
    toTools: (services) => createTools({ ...services, fetchUrlHosts: config.fetchUrlHosts }),
    outside: mcp,
    references: pictures.references,
    scheduler,
    adapterOf,
    pseudonym: (platform, userId) => pseudonym(keys.pseudonymKey, platform, userId),
    metrics,
    insight: dashboard.insight,
    log,
  });
  const onFatal = (reason: string) => options.onFatal(reason, platforms.adapters.size === 1);
  const platforms = await openPlatforms({ config, engine, database, stores, ...keys, openSetup, log, onFatal, onEnd });
  const adapters = [...platforms.adapters.values()];
  const arrivals = createArrivals(() => (listens ? adapters : []), log);
  for (const health of [gateway.health, gateway.secondHealth]) health?.begin();

  const inForce = { ...policy.shown, toolServers: () => readMcp(options).servers };
  const shown = await dashboard.mount({ ...engine, ...inForce, csrfKey: keys.browserKey });
  observeState(metrics, config, readState);

  const server = await startHttpServer({
    host: config.host,
    port: config.port,
    log,
    metrics,
    metricsToken: config.metricsToken,
    health: { accepting: async () => !isClosing, store: isStoreReachable, ...(listens && toConnected(adapters)) },
    states: {
      ...(gateway.health && { gateway: gateway.health.state }),
      ...(gateway.secondHealth && { secondGateway: gateway.secondHealth.state }),
    },
    mounts: [pictures.routes, arrivals.routes, ...shown, ...(listens ? platforms.mounts : [])],
    about: describeForVisitors(config),
    closeTimeoutMs: LAST_REQUESTS_MS,
  });
  serviceUrl = server.url;
  reachable.push(new URL(server.url).origin);

  return {
    url: server.url,
    hasPage: listens && config.platforms.some(({ module }) => module.surface === "page"),
    engine,
    adapterOf,
    async run() {
      engine.queue.start(works ? engine.worker : undefined);
      dashboard.begin();
      if (works) engine.alarm.start();
      const listening = listens ? adapters : [];
      for (const adapter of listening)
        await adapter.listen(arrivals.watch(adapter, engine.accept), engine.notifyDelayed);
    },
    async close(graceMs) {
      isClosing = true;
      engine.alarm.close();
      const cutAt = performance.now() + graceMs;
      // Stop accepting events, let running work finish, then close what running work writes to.
      const handOverMs = Math.min(graceMs, HAND_OVER_MS);
      await Promise.allSettled(adapters.map((adapter) => adapter.pause(handOverMs)));
      await engine.queue.close(Math.max(0, cutAt - performance.now()));
      policy.close();
      const leaving = mcp?.close();
      scheduler.close();
      for (const health of [gateway.health, gateway.secondHealth]) health?.close();
      await dashboard.close();
      await Promise.allSettled([...adapters.map((adapter) => adapter.close()), server.close()]);
      await gateway.close();
      await leaving;
      await stores.close();
      database.close();
    },
  };
}

function findAdapter({ adapters }: Platforms, platform: string): Adapter {
  const adapter = adapters.get(platform);
  if (adapter === undefined) throw new Error(`${platform} is not configured, so the bot cannot write there.`);
  return adapter;
}

function toEngineSettings(config: Config) {
  const { botName, removesWithQuestion, limits, gateway } = config;
  const { chatModel: model, imageModel, systemPrompt } = gateway;
  return { botName, removesWithQuestion, model, imageModel, systemPrompt, limits };
}

function observeState(metrics: Metrics, { role, limits }: Config, read: () => ProcessState): void {
  metrics.observe("role", () => ({ [role]: 1 }));
  metrics.observe("queue_places", () => (role === "ingress" ? 0 : limits.maxConcurrentTurns));
  metrics.observe("store_reachable", async () => Number(await read().isStoreReachable()));
  metrics.observe("gateway_working", () => Number(isWorking(read().gateway.health?.state())));
  metrics.observe("platform_connected", () => (role === "worker" ? {} : toConnections(read().adapters)));
  metrics.observe("gateway_paused_models", () => read().gateway.countPaused());
}

function toConnected(adapters: readonly Adapter[]): Record<string, () => Promise<boolean>> {
  return Object.fromEntries(adapters.map((adapter) => [adapter.platform, async () => adapter.isConnected()]));
}

function toConnections(adapters: readonly Adapter[]): Record<string, number> {
  return Object.fromEntries(adapters.map((adapter) => [adapter.platform, Number(adapter.isConnected())]));
}

/** The embedded sandbox has no health state, because it always works. */
function isWorking(state: GatewayState | undefined): boolean {
  return state === undefined || state === "ok" || state === "not known yet";
}

function openStorage({ dataDir }: Config, log: Logger): DatabaseSync {
  const path = join(dataDir, "palaver.sqlite");
  const database = openDatabase(path);
  for (const exposed of findExposed(path)) {
    log.warn(
      `Others on this machine can read ${exposed}, and its mode cannot be changed: move DATA_DIR to another disk.`,
    );
  }
  return database;
}

/** Opens the tool servers. Their tokens are stored only if an encryption key is configured. */
function openMcp(options: ServiceOptions, stores: Stores): McpServers {
  const { config, log } = options;
  const { mcp, encryptionKey } = config;
  const seal = encryptionKey && createSeal(encryptionKey);
  const tokens = seal && createTokenStore({ keyv: stores.open("tool-server-tokens"), seal, log });
  return openMcpServers({ ...mcp, read: () => readMcp(options), tokens, tokenForms: tokenForms(config.modules), log });
}

function readMcp({ config, env }: ServiceOptions) {
  return readMcpFile(config.mcp.path, env, readBoundedText);
}
