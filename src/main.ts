/** `npm start`: reads the environment, starts the service, and stops it on a signal. */
import type { Logger } from "pino";
import { startService } from "./app/service.ts";
import { createEnding, watchLauncher } from "./app/shutdown.ts";
import { type Config, ConfigError, readConfig } from "./config/config.ts";
import { describeConfig, secretsOf, tokenForms } from "./config/summary.ts";
import { createLogger } from "./log/log.ts";
import { PLATFORMS } from "./platforms.ts";
import { type AdapterModule, loadModules } from "./port/module.ts";
import type { Setup } from "./port/setup.ts";

/** The exit code that `sysexits.h` defines for a wrong configuration. */
const EX_CONFIG = 78;

function readConfigOrExit(modules: readonly AdapterModule[]): Config {
  try {
    return readConfig(process.env, modules);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return process.exit(EX_CONFIG);
  }
}

/** Creates the log: readable lines in a terminal, JSON everywhere else. */
async function openLog(config: Config): Promise<Logger> {
  const options = { level: config.logLevel, secrets: secretsOf(config), tokens: tokenForms(config.modules) };
  const hasTerminal = config.platforms.some(({ module }) => module.surface === "terminal");
  if (!process.stdout.isTTY && !hasTerminal) return createLogger(options);
  const { PinoPretty: pretty } = await import("pino-pretty");
  // The terminal chat uses standard output, so the log goes to standard error.
  const destination = pretty({
    // Leave out the `url` field, because the message already contains the URL.
    ignore: "pid,hostname,url",
    translateTime: "HH:MM:ss",
    sync: true,
    destination: hasTerminal ? 2 : 1,
  });
  return createLogger({ ...options, destination });
}

async function openSetup(modules: readonly AdapterModule[]): Promise<Setup> {
  const { createSetup } = await import("./setup/setup.ts");
  return createSetup({ env: process.env, folder: process.cwd(), modules });
}

async function main(): Promise<void> {
  // Makes all files that this process or its libraries create unreadable for other users of this machine.
  process.umask(0o077);
  const modules = await loadModules(PLATFORMS);
  const config = readConfigOrExit(modules);
  const log = await openLog(config);
  process.on("uncaughtException", (err) => {
    log.fatal({ err }, "The process exits after an uncaught error; the next start resumes the open work.");
    process.exit(1);
  });
  const starting = startService({
    config,
    env: process.env,
    log,
    openSetup: () => openSetup(modules),
    onFatal(reason, isLast) {
      log.fatal(reason);
      ending.begin("A platform no longer accepts this bot", { exitCode: 1, ...(isLast && { graceMs: 0 }) });
    },
    onEnd: () => ending.begin("The terminal was closed"),
  });
  const ending = createEnding(starting, config.limits.shutdownGraceMs, log);
  process.on("SIGTERM", (signal) => ending.begin(signal));
  process.on("SIGINT", (signal) => ending.begin(signal));
  for (const line of describeConfig(config)) log.info(line);
  // Stop when npm has gone. Otherwise this process would block the port and the data directory for the next start.
  if (process.env["npm_lifecycle_event"] !== undefined)
    watchLauncher(() => ending.begin("The process that started this one has exited"));
  try {
    const { url, hasPage, run } = await starting;
    await run();
    log.info({ url }, hasPage ? `Palaver is ready at ${url}` : "Palaver is ready");
  } catch (error) {
    // Do not continue the start after a signal to stop.
    if (ending.isBegun()) return;
    // The message says what to do; only `debug` needs the stack.
    log.debug({ err: error }, "The start failed");
    log.fatal(error instanceof Error ? error.message : "The start failed");
    process.exit(1);
  }
}

await main();
