/** `npm run export` and `npm run erase`: exports or erases one person's data, for the operator at the terminal. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { type Service, startService } from "./app/service.ts";
import { type Config, readConfig } from "./config/config.ts";
import { secretsOf, tokenForms } from "./config/summary.ts";
import { createLogger } from "./log/log.ts";
import { createOperatorData } from "./people/operator.ts";
import { PLATFORMS } from "./platforms.ts";
import { loadModules } from "./port/module.ts";
import { DatabaseError } from "./store/database.ts";

const USAGE = `Usage: npm run export -- PLATFORM:ID
       npm run erase -- PLATFORM:ID [for good]

PLATFORM:ID names a person by the id that the platform shows, or by WORKSPACE/ID if several workspaces have that id.
export writes everything stored about them to a file in this folder. erase shows what it would erase; with "for good"
after the id, it erases it. Both are recorded in the audit log.`;

const IN_USE =
  "The running service has locked the SQLite file. Ask an admin to write `/forget @someone` or `/export @someone` in the chat, or stop the service and try again.";

class Refusal extends Error {
  override readonly name = "Refusal";
}

/** Opens the configured service, but neither receives nor answers messages. */
function open(config: Config, dataDir: string): Promise<Service> {
  const log = createLogger({
    level: "warn",
    secrets: secretsOf(config),
    tokens: tokenForms(config.modules),
    destination: pino.destination({ dest: 2, sync: true }),
  });
  return startService({
    config: { ...config, dataDir, role: "ingress", host: "127.0.0.1", port: 0 },
    env: process.env,
    log,
    onFatal() {},
    onEnd() {},
  });
}

/** Runs `work` on the service's stores. With Redis, other processes can keep running meanwhile. */
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
    const data = createOperatorData(service.engine, userInfo().username);
    const [author, ...others] = await data.find(platform, id);
    if (author === undefined || others.length > 0) {
      const names = [author, ...others].map((one) => `${platform}:${one?.id}`).join(", ");
      throw new Refusal(`Several people have this id: ${names}. Use one of these full ids.`);
    }
    const name = `${platform}:${author.id}`;
    const kept = await service.engine.people.collect(platform, author);
    const nothing = `Nothing is stored about ${name}. Is the id right? docs/troubleshooting.md says where to find it.`;
    if (isEmpty(kept) && !isForGood) throw new Refusal(nothing);
    if (verb === "export")
      return exportTo(`export-${name.replace(/\W+/g, "-")}.json`, await data.collect(platform, author));
    if (!isForGood) return describeErasure(name, kept);
    const count = await data.erase(platform, author);
    if (isEmpty(kept) && count === 0) return nothing;
    return `Erased everything about ${name}: ${count} messages, and all other data.`;
  });
}

function exportTo(path: string, kept: object): string {
  writeFileSync(path, `${JSON.stringify(kept, null, 2)}\n`, { mode: 0o600 });
  return `Everything stored about this person is in ${path}. Only you can read that file.`;
}

/** Describes each list of an export. */
const KINDS: Readonly<Record<string, string>> = {
  feedback: "ratings of answers",
  givenToModel: "records of what the model saw",
  turns: "answers on the dashboard",
  usage: "usage entries",
  changes: "changes of settings and rules",
  lookedAt: "channels that were open next to a direct message",
};

function isEmpty(kept: object): boolean {
  return Object.values(kept).every((list) => !Array.isArray(list) || list.length === 0);
}

function describeErasure(name: string, kept: object): string {
  const lists = Object.entries(kept).flatMap(([kind, list]) =>
    Array.isArray(list) && list.length > 0 ? [`${KINDS[kind] ?? kind}: ${list.length}`] : [],
  );
  return `This erases everything about ${name}: ${lists.join(", ")}. It can't be undone. Nothing is erased yet. To confirm:\n\n  npm run erase -- ${name} for good`;
}

try {
  process.umask(0o077);
  process.stdout.write(`${await run(readConfig(process.env, await loadModules(PLATFORMS)), process.argv.slice(2))}\n`);
  process.exit(0);
} catch (error) {
  if (error instanceof Error) process.stderr.write(`${error.message}\n`);
  else throw error;
  process.exit(1);
}
