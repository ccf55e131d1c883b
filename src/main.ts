/** `npm start`: reads the environment, starts the service, and ends it when it is told to. */
import type { Logger } from "pino";
import { startService } from "./app/service.ts";
import { createEnding, watchLauncher } from "./app/shutdown.ts";
import { type Config, ConfigError, readConfig } from "./config/config.ts";
import { readMcpFile } from "./config/mcp-servers.ts";
import { readBoundedText } from "./config/read-text.ts";
import { describeConfig, secretsOf } from "./config/summary.ts";
import { createLogger } from "./log/log.ts";
import { createPlatforms } from "./platforms.ts";
import { readPolicyApart } from "./policy/read-apart.ts";
import type { Setup } from "./port/setup.ts";

/** `sysexits.h`: something was found in an unconfigured or misconfigured state. */
const EX_CONFIG = 78;

function readConfigOrExit(): Config {
  try {
    return readConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return process.exit(EX_CONFIG);
  }
}

/** A person at a terminal reads lines; everything else that reads a log reads JSON. */
async function openLog(config: Config): Promise<Logger> {
  const secrets = secretsOf(config);
  if (!process.stdout.isTTY && !config.consoleChat) return createLogger({ level: config.logLevel, secrets });
  const { PinoPretty: pretty } = await import("pino-pretty");
  // A conversation at the terminal has standard output for itself.
  const destination = pretty({
    // The address is in the sentence too.
    ignore: "pid,hostname,url",
    translateTime: "HH:MM:ss",
    sync: true,
    destination: config.consoleChat ? 2 : 1,
  });
  return createLogger({ level: config.logLevel, secrets, destination });
}

async function openSetup(): Promise<Setup> {
  const { createSetup } = await import("./setup/setup.ts");
  return createSetup({ env: process.env, folder: process.cwd() });
}

async function main(): Promise<void> {
  // Nobody else may read the files of this process, those of its libraries included.
  process.umask(0o077);
  const config = readConfigOrExit();
  const log = await openLog(config);
  process.on("uncaughtException", (err) => {
    log.fatal({ err }, "The process exits after an uncaught error; the next start resumes the open work.");
    process.exit(1);
  });
  const starting = startService({
    config,
    readMcp: () => readMcpFile(config.mcp.path, process.env, readBoundedText),
    readPolicy: (signal) => readPolicyApart(config.policy.path ?? "", signal),
    log,
    createPlatforms: (options) => createPlatforms(options, openSetup),
    onFatal(reason, isLast) {
      log.fatal(reason);
      ending.begin("A platform no longer accepts this bot", { exitCode: 1, ...(isLast && { graceMs: 0 }) });
    },
    onEnd: () => ending.begin("The terminal has ended"),
  });
  const ending = createEnding(starting, config.limits.shutdownGraceMs, log);
  process.on("SIGTERM", (signal) => ending.begin(signal));
  process.on("SIGINT", (signal) => ending.begin(signal));
  for (const line of describeConfig(config)) log.info(line);
  // npm that is killed leaves what it started behind, which would hold the port and the data against the next start.
  if (process.env["npm_lifecycle_event"] !== undefined)
    watchLauncher(() => ending.begin("The process that started this one has exited"));
  try {
    const { url, hasPage, run } = await starting;
    await run();
    log.info({ url }, hasPage ? `Palaver is ready at ${url}` : "Palaver is ready");
  } catch (error) {
    // A signal to end the service ends its start too.
    if (ending.isBegun()) return;
    // The sentence says what to do; where it was thrown is for those who ask for it.
    log.debug({ err: error }, "The start failed");
    log.fatal(error instanceof Error ? error.message : "The start failed");
    process.exit(1);
  }
}

await main();
