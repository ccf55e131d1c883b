/**
 * The composition root: configuration, gateway, store, queue, bot, adapters, HTTP, shutdown.
 * The only file that reads the environment.
 */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { PinoPretty as pretty } from "pino-pretty";
import { createEngine } from "./app/engine.ts";
import { watchLauncher } from "./app/launcher.ts";
import { createPictureSources } from "./app/picture-sources.ts";
import { createEnding } from "./app/shutdown.ts";
import {
  type Config,
  ConfigError,
  platformsOfSeveralWorkspaces,
  publicFileOrigins,
  readConfig,
} from "./config/config.ts";
import { describeConfig, secretsOf } from "./config/summary.ts";
import { createGateway } from "./gateway/client.ts";
import { watchGateway } from "./gateway/health.ts";
import { pseudonym } from "./gateway/user.ts";
import type { History } from "./history/history.ts";
import { startHttpServer } from "./http/server.ts";
import { createLogger } from "./log/log.ts";
import { createMetrics } from "./metrics/metrics.ts";
import { createScheduler } from "./pacing/scheduler.ts";
import { createPlatforms } from "./platforms.ts";
import { startSandbox } from "./sandbox/server.ts";
import { openDatabase } from "./store/database.ts";
import { createStores } from "./store/keyv.ts";
import { findExposed } from "./store/private-files.ts";
import { createCurrentTime } from "./tools/current-time.ts";
import { createHistorySearch, createRecall, type ReadBefore } from "./tools/recall.ts";

/** `sysexits.h`: something was found in an unconfigured or misconfigured state. */
const EX_CONFIG = 78;

/** Longest that requests under way hold up the end. */
const LAST_REQUESTS_MS = 2_000;

interface Service {
  url: string;
  /** Begins the work, and resolves when every platform is connected. Rejects where one is not, and when it is closed. */
  run(): Promise<void>;
  /** What runs may go on for `graceMs`; what comes after that is bounded by itself. */
  close(graceMs: number): Promise<void>;
}

interface Endings {
  /** A platform takes this bot no more. `isLast`: there is no other one. */
  onFatal(reason: string, isLast: boolean): void;
  /** The person at the terminal has nothing more to say. */
  onEnd(): void;
}

async function start(config: Config, log: Logger, { onFatal, onEnd }: Endings): Promise<Service> {
  const { limits, botName } = config;
  let isClosing = false;
  const databasePath = join(config.dataDir, "palaver.sqlite");
  const database = openDatabase(databasePath);
  for (const path of findExposed(databasePath)) {
    log.warn(`Others on this machine can read ${path}, and its mode cannot be changed: move DATA_DIR to another disk.`);
  }
  const stores = createStores({ redisUrl: config.redisUrl, database, log });
  const reachable = publicFileOrigins(config);
  const sandbox = config.gateway.baseUrl === undefined ? await startEmbeddedSandbox(reachable, log) : undefined;
  const { imageKeyHeader } = config.gateway;
  const gateway = createGateway({
    baseUrl: config.gateway.baseUrl ?? sandbox?.url ?? "",
    apiKey: config.gateway.apiKey ?? "sk-sandbox-all",
    ...(imageKeyHeader !== undefined && { imageKeyHeader }),
    log,
  });
  const { baseUrl, chatModel, imageModel } = config.gateway;
  // The embedded sandbox is what it is configured to be.
  const watched = baseUrl === undefined ? undefined : { gateway, baseUrl, chatModel, imageModel, log };
  const gatewayHealth = watched && watchGateway({ ...watched, onChange: (problem) => platforms.showGateway(problem) });
  const metrics = createMetrics();
  const scheduler = createScheduler({ now: () => performance.now() });
  const secret = await readOrCreateSecret(stores.open("identity"), "pseudonym-key");
  let serviceUrl: string | undefined;

  const adapterOf = (platform: string) => {
    const adapter = platforms.adapters.get(platform);
    if (adapter === undefined) throw new Error(`${platform} is not switched on, so nothing can be written there.`);
    return adapter;
  };
  const pictures = createPictureSources({
    config,
    adapterOf,
    stores,
    ownKey: await readOrCreateSecret(stores.open("identity"), "relay-key"),
    serviceUrl: () => serviceUrl,
    log,
  });
  const engine = createEngine({
    botName,
    model: config.gateway.chatModel,
    imageModel: config.gateway.imageModel,
    systemPrompt: config.gateway.systemPrompt,
    limits,
    severalWorkspaces: platformsOfSeveralWorkspaces(config),
    database,
    stores,
    gateway: gatewayHealth?.heard ?? gateway,
    toTools: (history) => [createCurrentTime(Date.now), createRecall(createHistorySearch(toReadBefore(history)))],
    references: pictures.references,
    scheduler,
    adapterOf,
    pseudonym: (platform, userId) => pseudonym(secret, platform, userId),
    metrics,
    log,
  });
  const { queue } = engine;
  const onLost = (reason: string) => onFatal(reason, platforms.adapters.size === 1);
  const keys = {
    browserKey: await readOrCreateSecret(stores.open("identity"), "browser-key"),
    markKey: await readOrCreateSecret(stores.open("identity"), "mark-key"),
  };
  const platforms = await createPlatforms({ config, engine, database, stores, ...keys, log, onFatal: onLost, onEnd });
  const { adapters } = platforms;
  gatewayHealth?.begin();

  const server = await startHttpServer({
    host: config.host,
    port: config.port,
    log,
    metrics,
    metricsToken: config.metricsToken,
    health: {
      accepting: async () => !isClosing,
      store: () => stores.isReachable(AbortSignal.timeout(2_000)),
      ...Object.fromEntries(
        [...adapters.values()].map((adapter) => [adapter.platform, async () => adapter.isConnected()]),
      ),
    },
    ...(gatewayHealth !== undefined && { states: { gateway: gatewayHealth.state } }),
    mounts: [pictures.routes, ...platforms.mounts],
    closeTimeoutMs: LAST_REQUESTS_MS,
  });
  serviceUrl = server.url;
  reachable.push(new URL(server.url).origin);

  return {
    url: server.url,
    async run() {
      queue.start(engine.worker);
      for (const adapter of adapters.values()) await adapter.listen(engine.accept);
    },
    async close(graceMs) {
      isClosing = true;
      const cutAt = performance.now() + graceMs;
      // Nothing is taken in any more; what runs may still write its end; then everything it wrote with goes away.
      await Promise.allSettled([...adapters.values()].map((adapter) => adapter.pause()));
      await queue.close(Math.max(0, cutAt - performance.now()));
      scheduler.close();
      gatewayHealth?.close();
      await Promise.allSettled([...[...adapters.values()].map((adapter) => adapter.close()), server.close()]);
      await gateway.close();
      await sandbox?.close();
      await stores.close();
      database.close();
    },
  };
}

function toReadBefore(history: History): ReadBefore {
  return (conversationId, beforeId, maxEntries) =>
    history.read(conversationId, { maxEntries, ...(beforeId !== undefined && { beforeId }) });
}

/** It takes links as if it were far away, except to the `reachable` origins; more may be added while it runs. */
async function startEmbeddedSandbox(reachable: readonly string[], log: Logger) {
  const sandbox = await startSandbox({
    host: "127.0.0.1",
    port: 0,
    trustedFileOrigins: reachable,
    log: log.child({ part: "sandbox" }),
  });
  log.info("No GATEWAY_BASE_URL is set: the embedded sandbox gateway answers. It needs no key and is no real model.");
  return sandbox;
}

/**
 * `pseudonym-key` makes the pseudonyms that the gateway gets instead of people's ids, `relay-key` signs the links under
 * which it fetches pictures, `browser-key` what browsers prove themselves with; `mark-key` marks the bot's own messages
 * so that they are found again. Each is made once and kept with the history.
 */
type SecretName = "pseudonym-key" | "relay-key" | "browser-key" | "mark-key";

async function readOrCreateSecret(keyv: Keyv, name: SecretName): Promise<string> {
  const known: unknown = await keyv.get(name);
  if (typeof known === "string") return known;
  const secret = randomBytes(32).toString("base64url");
  await keyv.set(name, secret);
  return secret;
}

function readConfigOrExit(): Config {
  try {
    return readConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return process.exit(EX_CONFIG);
  }
}

async function main(): Promise<void> {
  // Whatever this process writes, its libraries included, is for nobody else to read.
  process.umask(0o077);
  const config = readConfigOrExit();
  // A person at a terminal reads lines; everything else that reads a log reads JSON.
  const destination =
    process.stdout.isTTY || config.consoleChat
      ? pretty({
          ignore: "pid,hostname",
          translateTime: "HH:MM:ss",
          sync: true,
          destination: config.consoleChat ? 2 : 1,
        })
      : undefined;
  const log = createLogger({ level: config.logLevel, secrets: secretsOf(config), ...(destination && { destination }) });
  process.on("uncaughtException", (err) => {
    log.fatal({ err }, "the process ends after an error nobody caught; open work is taken up again at the next start");
    process.exit(1);
  });
  for (const line of describeConfig(config)) log.info(line);

  const starting = start(config, log, {
    onFatal(reason, isLast) {
      log.fatal(reason);
      ending.begin("A platform takes this bot no more", { exitCode: 1, ...(isLast && { graceMs: 0 }) });
    },
    onEnd: () => ending.begin("The terminal has ended"),
  });
  const ending = createEnding(starting, config.limits.shutdownGraceMs, log);
  process.on("SIGTERM", (signal) => ending.begin(signal));
  process.on("SIGINT", (signal) => ending.begin(signal));
  // npm that is killed leaves what it started behind, which would hold the port and the data against the next start.
  if (process.env["npm_lifecycle_event"] !== undefined) watchLauncher(() => ending.begin("The launcher is gone"));
  try {
    const { url, run } = await starting;
    await run();
    log.info({ url }, `Palaver is ready at ${url}`);
  } catch (error) {
    // Whoever ends the service ends its start too.
    if (ending.isBegun()) return;
    // The sentence says what to do; where it was thrown is for those who ask for it.
    log.debug({ err: error }, "the start failed");
    log.fatal(error instanceof Error ? error.message : "the start failed");
    process.exit(1);
  }
}

await main();
