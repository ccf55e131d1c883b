/**
 * The composition root: configuration, gateway, store, queue, bot, adapters, HTTP, shutdown.
 * The only file that reads the environment and the only one that knows the adapters.
 */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { PinoPretty as pretty } from "pino-pretty";
import { createLocalAdapter } from "../adapters/local/index.ts";
import type { Adapter, CommandEvent } from "./adapter.ts";
import { createAnswers } from "./answers.ts";
import { createAttempt } from "./attempt.ts";
import { createBot } from "./bot.ts";
import type { Command } from "./commands/command.ts";
import { createExportCommand } from "./commands/export.ts";
import { createForgetCommand } from "./commands/forget.ts";
import { createHelpCommand } from "./commands/help.ts";
import { createQuietCommand } from "./commands/quiet.ts";
import { describeConfig, secretsOf } from "./config/summary.ts";
import { type Config, ConfigError, readConfig } from "./config.ts";
import { createReadContext } from "./context.ts";
import { createGateway } from "./gateway/client.ts";
import { pseudonym } from "./gateway/user.ts";
import { createHistory } from "./history.ts";
import { startHttpServer } from "./http/server.ts";
import { createLogger } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { createEvenPacer } from "./pacing/even.ts";
import { createScheduler } from "./pacing/scheduler.ts";
import { createEmbeddedQueue } from "./queue/embedded.ts";
import { startSandbox } from "./sandbox/server.ts";
import { emptyLog, openDatabase } from "./store/database.ts";
import { createStores } from "./store/keyv.ts";
import { createCurrentTime } from "./tools/current-time.ts";
import { createHistorySearch, createRecall, type ReadBefore } from "./tools/recall.ts";
import { createTurnRecords } from "./turn-record.ts";

/** Seconds between two writes of the local page, which sets no limit of its own: even enough to read along. */
const LOCAL_GAP_SECONDS = 0.12;

/** `sysexits.h`: something was found in an unconfigured or misconfigured state. */
const EX_CONFIG = 78;
/** Signals closer together than this are one. */
const SAME_SIGNAL_MS = 1_000;
/** Longest that the end may take beyond the grace period. */
const CLOSE_MS = 20_000;

interface Service {
  url: string;
  close(): Promise<void>;
}

async function start(config: Config, log: Logger): Promise<Service> {
  const { limits } = config;
  let isClosing = false;
  const database = openDatabase(join(config.dataDir, "palaver.sqlite"));
  const stores = createStores({ redisUrl: config.redisUrl, database, log });
  const sandbox = config.gateway.baseUrl === undefined ? await startEmbeddedSandbox(log) : undefined;
  const gateway = createGateway({
    baseUrl: config.gateway.baseUrl ?? sandbox?.url ?? "",
    apiKey: config.gateway.apiKey ?? "sk-sandbox-all",
    ...(config.gateway.imageKeyHeader !== undefined && { imageKeyHeader: config.gateway.imageKeyHeader }),
    log,
  });
  const metrics = createMetrics();
  const history = createHistory({ open: stores.open, ttlMs: limits.historyTtlMs, log, now: Date.now });
  const records = createTurnRecords({ open: stores.open, ttlMs: limits.historyTtlMs, log });
  const queue = createEmbeddedQueue({ database, maxActive: limits.maxConcurrentTurns, log });
  const scheduler = createScheduler({
    pacerFor: () => createEvenPacer({ gap: LOCAL_GAP_SECONDS }),
    now: () => performance.now() / 1_000,
  });
  metrics.observeQueue(queue.depth);

  const adapters = new Map<string, Adapter>();
  const adapterOf = (platform: string): Adapter => {
    const adapter = adapters.get(platform);
    if (adapter === undefined) throw new Error(`${platform} is not switched on, so nothing can be written there.`);
    return adapter;
  };
  const erase = async ({ key, reply: { platform }, author }: CommandEvent) => {
    await queue.forget(platform, author.id, key);
    const count = await history.forgetAuthor(platform, author.id);
    await records.forget(platform, author.id);
    await adapterOf(platform).forget?.(author.id);
    emptyLog(database);
    return count;
  };
  const commands: Command[] = [createQuietCommand(history), createExportCommand(history), createForgetCommand(erase)];
  commands.unshift(createHelpCommand(config.botName, commands));
  const local = createLocalAdapter({ ...config.localChat, database, botName: config.botName, log, commands });
  if (config.localChat.enabled) adapters.set(local.platform, local);

  const secret = await readOrCreateSecret(stores.open("identity"));
  const readBefore: ReadBefore = (conversationId, beforeId, maxEntries) =>
    history.read(conversationId, { maxEntries, ...(beforeId !== undefined && { beforeId }) });
  const attempt = createAttempt({
    gateway,
    model: config.gateway.chatModel,
    tools: [createCurrentTime(Date.now), createRecall(createHistorySearch(readBefore))],
    readContext: createReadContext({
      history,
      systemPrompt: config.gateway.systemPrompt,
      maxEntries: limits.historyMaxMessages,
      maxTokens: limits.historyMaxTokens,
      adapterOf,
      log,
    }),
    history,
    records,
    scheduler,
    adapterOf,
    pseudonym: (platform, userId) => pseudonym(secret, platform, userId),
    metrics,
    log,
  });
  const answers = createAnswers({ records, history, adapterOf, attempt, log });
  const server = await startHttpServer({
    host: config.host,
    port: config.port,
    log,
    metrics,
    health: {
      accepting: async () => !isClosing,
      store: () => stores.isReachable(AbortSignal.timeout(2_000)),
      ...Object.fromEntries(
        [...adapters.values()].map((adapter) => [adapter.platform, async () => adapter.isConnected()]),
      ),
    },
    mounts: config.localChat.enabled ? [local.app] : [],
  });

  queue.start(createBot({ answers, history, commands, adapterOf, log }));
  for (const adapter of adapters.values()) {
    await adapter.listen(async (event) => void (await queue.accept(event)));
  }

  return {
    url: server.url,
    async close() {
      isClosing = true;
      // Nothing is taken in any more; what runs may still write its end; then everything it wrote with goes away.
      await Promise.allSettled([...adapters.values()].map((adapter) => adapter.pause()));
      await queue.close(limits.shutdownGraceMs);
      scheduler.close();
      for (const adapter of adapters.values()) await adapter.close();
      await server.close();
      await gateway.close();
      await sandbox?.close();
      await stores.close();
      database.close();
    },
  };
}

async function startEmbeddedSandbox(log: Logger) {
  const sandbox = await startSandbox({ host: "127.0.0.1", port: 0, log: log.child({ part: "sandbox" }) });
  log.info("No GATEWAY_BASE_URL is set: the embedded sandbox gateway answers. It needs no key and is no real model.");
  return sandbox;
}

/** Key of the pseudonyms that the gateway gets instead of people's ids; made once and kept with the history. */
async function readOrCreateSecret(keyv: Keyv): Promise<string> {
  const known: unknown = await keyv.get("pseudonym-key");
  if (typeof known === "string") return known;
  const secret = randomBytes(32).toString("base64url");
  await keyv.set("pseudonym-key", secret);
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
  const config = readConfigOrExit();
  // A person at a terminal reads lines; everything else that reads a log reads JSON.
  const destination = process.stdout.isTTY
    ? pretty({ ignore: "pid,hostname", translateTime: "HH:MM:ss", sync: true })
    : undefined;
  const log = createLogger({ level: config.logLevel, secrets: secretsOf(config), ...(destination && { destination }) });
  process.on("uncaughtException", (err) => {
    log.fatal({ err }, "the process ends after an error nobody caught; open work is taken up again at the next start");
    process.exit(1);
  });
  for (const line of describeConfig(config)) log.info(line);

  const starting = start(config, log);
  endOnSignals(starting, config.limits.shutdownGraceMs, log);
  try {
    const { url } = await starting;
    log.info({ url }, `Palaver is ready at ${url}`);
  } catch (error) {
    log.fatal({ err: error }, error instanceof Error ? error.message : "the start failed");
    process.exit(1);
  }
}

/** The first signal ends the service in order, also one that is just starting; a later one ends it at once. */
function endOnSignals(starting: Promise<Service>, graceMs: number, log: Logger): void {
  let askedAt: number | undefined;
  const end = async (signal: NodeJS.Signals) => {
    if (askedAt !== undefined) {
      // Ctrl-C at a terminal reaches this process twice: from the terminal, and passed on by npm.
      if (performance.now() - askedAt > SAME_SIGNAL_MS) process.exit(1);
      return;
    }
    askedAt = performance.now();
    log.info(`${signal}: finishing what runs, at most ${graceMs / 1_000} s; once more ends it at once`);
    setTimeout(() => {
      log.error("the service did not end in time and is cut; open work is taken up again at the next start");
      process.exit(1);
    }, graceMs + CLOSE_MS);
    await (await starting).close();
    process.exit(0);
  };
  process.on("SIGTERM", (signal) => void end(signal));
  process.on("SIGINT", (signal) => void end(signal));
}

await main();
