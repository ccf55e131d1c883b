/** `npm run export` and `npm run erase`: what is kept about one person, for the operator at the terminal. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { type Service, startService } from "./app/service.ts";
import { type Config, readConfig } from "./config/config.ts";
import { readMcpFile } from "./config/mcp-servers.ts";
import { readBoundedText } from "./config/read-text.ts";
import { secretsOf } from "./config/summary.ts";
import { createLogger } from "./log/log.ts";
import { createOperatorData } from "./people/operator.ts";
import { createPlatforms } from "./platforms.ts";
import { readPolicyApart } from "./policy/read-apart.ts";
import { DatabaseError } from "./store/database.ts";

const USAGE = `Usage: npm run export -- PLATFORM:ID
       npm run erase -- PLATFORM:ID [for good]

PLATFORM:ID names a person, by the id that the platform shows, or WORKSPACE/ID where several workspaces have the same.
export writes everything that is kept about them into a file in this folder. erase says what it would erase, and erases
it once the words "for good" stand behind the id. The audit log keeps both.`;

const IN_USE =
  "The running service has the SQLite file for itself. While it runs, an admin writes `/forget @someone` or `/export @someone` in the chat; or stop the service and try again.";

class Refusal extends Error {
  override readonly name = "Refusal";
}

/** Opens the service as it is configured, and lets it hear and answer nothing. */
function open(config: Config, dataDir: string): Promise<Service> {
  const log = createLogger({
    level: "warn",
    secrets: secretsOf(config),
    destination: pino.destination({ dest: 2, sync: true }),
  });
  return startService({
    config: { ...config, dataDir, role: "ingress", host: "127.0.0.1", port: 0 },
    readMcp: () => readMcpFile(config.mcp.path, process.env, readBoundedText),
    readPolicy: (signal) => readPolicyApart(config.policy.path ?? "", signal),
    log,
    createPlatforms,
    onFatal() {},
    onEnd() {},
  });
}

/** Runs `work` on the stores of the service. With Redis that works beside running processes. */
async function withService<T>(config: Config, work: (service: Service, isBeside: boolean) => Promise<T>): Promise<T> {
  const spare = mkdtempSync(join(tmpdir(), "palaver-"));
  try {
    let isBeside = false;
    const service = await open(config, config.dataDir).catch((error: unknown) => {
      if (!(error instanceof DatabaseError) || !error.isInUse) throw error;
      if (config.redisUrl === undefined) throw new Refusal(IN_USE);
      isBeside = true;
      return open(config, spare);
    });
    try {
      return await work(service, isBeside);
    } finally {
      await service.close(0);
    }
  } finally {
    rmSync(spare, { recursive: true, force: true });
  }
}

function readArguments([verb, person = "", ...words]: readonly string[]) {
  const [, platform, id] = /^([a-z]+):(\S+)$/.exec(person) ?? [];
  const said = words.join(" ").toLowerCase();
  if (platform === undefined || id === undefined || !["", "for good"].includes(said)) throw new Refusal(USAGE);
  return { verb, platform, id, isForGood: said !== "" };
}

async function run(config: Config, args: readonly string[]): Promise<string> {
  const { verb, platform, id, isForGood } = readArguments(args);
  return withService(config, async (service, isBeside) => {
    if (isBeside && service.adapterOf(platform).isOwn === true) throw new Refusal(IN_USE);
    const data = createOperatorData({ ...service.engine, by: userInfo().username });
    const [author, ...others] = await data.find(platform, id);
    if (author === undefined || others.length > 0) {
      const names = [author, ...others].map((one) => `${platform}:${one?.id}`).join(", ");
      throw new Refusal(`Several people have this id: ${names}. Name one of them in full.`);
    }
    const name = `${platform}:${author.id}`;
    if (verb === "export")
      return exportTo(`export-${name.replace(/\W+/g, "-")}.json`, await data.collect(platform, author));
    if (!isForGood) return describeErasure(name, await service.engine.people.collect(platform, author));
    const count = await data.erase(platform, author);
    return `Erased everything about ${name}: ${count} messages, and what else was kept.`;
  });
}

function exportTo(path: string, kept: object): string {
  writeFileSync(path, `${JSON.stringify(kept, null, 2)}\n`, { mode: 0o600 });
  return `Everything that is kept about this person is in ${path}. Nobody else can read that file.`;
}

function describeErasure(name: string, kept: object): string {
  const lists = Object.entries(kept).flatMap(([kind, list]) => (Array.isArray(list) ? [`${kind} ${list.length}`] : []));
  return `This erases everything about ${name}: ${lists.join(", ")}. It cannot be brought back, and nothing is erased yet. If you mean it:\n\n  npm run erase -- ${name} for good`;
}

try {
  process.umask(0o077);
  process.stdout.write(`${await run(readConfig(process.env), process.argv.slice(2))}\n`);
  process.exit(0);
} catch (error) {
  if (error instanceof Error) process.stderr.write(`${error.message}\n`);
  else throw error;
  process.exit(1);
}
