import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Hono } from "hono";
import type { Logger } from "pino";
import { type Config, platformsOfSeveralWorkspaces, publicFileOrigins } from "../config/config.ts";
import type { McpSettings } from "../config/mcp-servers.ts";
import type { PolicySettings } from "../config/policy/policy-file.ts";
import { describeForVisitors } from "../config/summary.ts";
import type { History } from "../history/history.ts";
import { startHttpServer } from "../http/server.ts";
import type { McpServers } from "../mcp/servers.ts";
import { createTokenStore } from "../mcp/tokens.ts";
import type { Files } from "../media/files.ts";
import { createMetrics, type Metrics } from "../metrics/metrics.ts";
import type { GatewayProblem, GatewayState } from "../models/health.ts";
import { createScheduler } from "../pacing/scheduler.ts";
import type { Adapter } from "../port/adapter.ts";
import { createSeal } from "../port/seal.ts";
import { openDatabase } from "../store/database.ts";
import { createStores, type Stores } from "../store/keyv.ts";
import { findExposed } from "../store/private-files.ts";
import { createCurrentTime } from "../tools/current-time.ts";
import { createFetchUrl } from "../tools/fetch-url.ts";
import type { ReadBefore } from "../tools/past.ts";
import { createReadFile } from "../tools/read-file.ts";
import { createReadThread } from "../tools/read-thread.ts";
import { createFindOthers, createHistorySearch, createSearchHistory } from "../tools/search-history.ts";
import type { Tool } from "../tools/tool.ts";
import { openDashboard, type ProcessState } from "./dashboard.ts";
import { createEngine, type Engine } from "./engine.ts";
import { openMcpServers, openPolicyFile } from "./followed-files.ts";
import { openGateway } from "./gateway.ts";
import { readKeys } from "./keys.ts";
import { createPictureSources } from "./picture-sources.ts";
import { pseudonym } from "./pseudonym.ts";
import { openSharedLimits, type SharedLimits } from "./shared.ts";

/** Longest that requests under way hold up the end. */
const LAST_REQUESTS_MS = 1_000;
const STORE_PROBE_MS = 2_000;
/** Longest that other processes are waited for, which are to hear what only this one does. */
const HAND_OVER_MS = 10_000;

export interface Service {
  url: string;
  /** Whether people can chat at `url`. */
  hasPage: boolean;
  engine: Pick<Engine, "people" | "history" | "usage" | "audit">;
  /** Throws for a platform that is not switched on. */
  adapterOf(platform: string): Adapter;
  /** Resolves when every platform is connected. Rejects when one is not, and when it is closed. */
  run(): Promise<void>;
  /** Work that is under way may go on for `graceMs`; what comes after that is bounded by itself. */
  close(graceMs: number): Promise<void>;
}

export interface ServiceOptions {
  config: Config;
  /** Reads the file of the tool servers again. */
  readMcp(): McpSettings;
  /** Reads the file of the policy again. */
  readPolicy(signal: AbortSignal): Promise<PolicySettings>;
  log: Logger;
  createPlatforms(options: PlatformsOptions): Promise<Platforms>;
  /** A platform takes this bot no more. `isLast`: there is no other one. */
  onFatal(reason: string, isLast: boolean): void;
  /** The person at the terminal has nothing more to say. */
  onEnd(): void;
}

export interface PlatformsOptions {
  config: Config;
  engine: Pick<
    Engine,
    | "commands"
    | "listModels"
    | "imagineMenu"
    | "readAbout"
    | "findTurn"
    | "isListening"
    | "looking"
    | "readPersona"
    | "access"
    | "eraseConversations"
    | "queue"
  >;
  database: DatabaseSync;
  stores: Pick<Stores, "open" | "inTurn" | "shared" | "now">;
  /** Absent where no other process calls the platforms. */
  limits?: Pick<SharedLimits, "waitsOf"> | undefined;
  /** Signs what proves that a browser was let in before. */
  browserKey: string;
  /** Marks the bot's own messages, so that they are found again. */
  markKey: string;
  log: Logger;
  /** A platform takes this bot no more. */
  onFatal(reason: string): void;
  /** The person at the terminal has nothing more to say. */
  onEnd(): void;
}

export interface Platforms {
  adapters: ReadonlyMap<string, Adapter>;
  /** Their routes on the one HTTP server. */
  mounts: Hono[];
  /** Shows the operator a problem of the gateway; undefined: it is over. */
  showGateway(problem: GatewayProblem | undefined): void;
}

/** Puts the service together: store, gateway, engine, platforms, HTTP. Nothing is worked on before `run`. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, log, createPlatforms, onEnd } = options;
  const [listens, works] = [config.role !== "worker", config.role !== "ingress"];
  let isClosing = false;
  let serviceUrl: string | undefined;
  const database = openStorage(config, log);
  const stores = createStores({ redisUrl: config.redisUrl, database, log });
  const keys = await readKeys(stores);
  const limits = openSharedLimits(stores, (key, calls) => scheduler.recall(key, calls), log);
  const scheduler = createScheduler({ now: () => performance.now(), onCall: limits?.calls.note });
  const reachable = publicFileOrigins(config);
  const onProblem = (problem: GatewayProblem | undefined) => platforms.showGateway(problem);
  const gateway = await openGateway({ config, reachable, onProblem, shared: limits, log });
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
  const policy = openPolicyFile({ ...config.policy, read: options.readPolicy, log });
  const mcp = works ? openMcp(options, stores) : undefined;
  const engine = createEngine({
    ...toEngineSettings(config),
    policy: policy.current,
    database,
    stores,
    gateway: gateway.client,
    toTools: (history, files) => toTools(history, files, adapterOf, config.fetchUrlHosts),
    outside: mcp,
    references: pictures.references,
    scheduler,
    calls: limits?.calls,
    adapterOf,
    pseudonym: (platform, userId) => pseudonym(keys.pseudonymKey, platform, userId),
    metrics,
    insight: dashboard.insight,
    log,
  });
  const onFatal = (reason: string) => options.onFatal(reason, platforms.adapters.size === 1);
  const platforms = await createPlatforms({ config, engine, database, stores, limits, ...keys, log, onFatal, onEnd });
  const adapters = [...platforms.adapters.values()];
  for (const health of [gateway.health, gateway.secondHealth]) health?.begin();

  const inForce = { ...policy.shown, toolServers: () => options.readMcp().servers };
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
    mounts: [pictures.routes, ...shown, ...(listens ? platforms.mounts : [])],
    about: describeForVisitors(config),
    closeTimeoutMs: LAST_REQUESTS_MS,
  });
  serviceUrl = server.url;
  reachable.push(new URL(server.url).origin);

  return {
    url: server.url,
    hasPage: listens && config.localChat.enabled,
    engine,
    adapterOf,
    async run() {
      engine.queue.start(works ? engine.worker : undefined);
      dashboard.begin();
      if (listens) for (const adapter of adapters) await adapter.listen(engine.accept, engine.sayWaits);
    },
    async close(graceMs) {
      isClosing = true;
      const cutAt = performance.now() + graceMs;
      // Nothing more is accepted; running work may still write its end; then everything it wrote with goes away.
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
      limits?.close();
      await stores.close();
      database.close();
    },
  };
}

function findAdapter({ adapters }: Platforms, platform: string): Adapter {
  const adapter = adapters.get(platform);
  if (adapter === undefined) throw new Error(`${platform} is not switched on, so nothing can be written there.`);
  return adapter;
}

/** The settings that the engine takes unchanged from the configuration. */
function toEngineSettings(config: Config) {
  const { botName, removesWithQuestion, limits, gateway } = config;
  const { chatModel: model, imageModel, systemPrompt } = gateway;
  const severalWorkspaces = platformsOfSeveralWorkspaces(config);
  return { botName, removesWithQuestion, model, imageModel, systemPrompt, limits, severalWorkspaces };
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

/** The embedded sandbox has no state, and nothing can be wrong with it. */
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

/** Opens the servers of tools. Their tokens are stored only where there is a key to encrypt them. */
function openMcp({ config, readMcp, log }: ServiceOptions, stores: Stores): McpServers {
  const { mcp, encryptionKey } = config;
  const seal = encryptionKey && createSeal(encryptionKey);
  const tokens = seal && createTokenStore({ keyv: stores.open("tool-server-tokens"), seal, log });
  return openMcpServers({ ...mcp, read: readMcp, tokens, log });
}

function toTools(
  history: History,
  files: Files,
  adapterOf: (platform: string) => Adapter,
  fetchUrlHosts: readonly string[],
): Tool[] {
  const readBefore = toReadBefore(history);
  return [
    createCurrentTime(Date.now),
    createSearchHistory(createHistorySearch(readBefore), createFindOthers({ history, adapterOf })),
    createReadThread({ readBefore, adapterOf }),
    createReadFile(files, readBefore),
    ...(fetchUrlHosts.length > 0 ? [createFetchUrl(fetchUrlHosts)] : []),
  ];
}

function toReadBefore(history: History): ReadBefore {
  return (conversationId, beforeId, maxEntries) => history.read(conversationId, { maxEntries, beforeId });
}
