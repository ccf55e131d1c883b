/** `npm run backup`: a consistent copy of the SQLite file, even while the service runs. */
import { chmodSync, existsSync } from "node:fs";
import { join } from "node:path";
import { backup } from "node:sqlite";
import { readConfig } from "./config/config.ts";
import { PLATFORMS } from "./platforms.ts";
import { loadModules } from "./port/module.ts";
import { openForReading } from "./store/database.ts";
import { createFolder } from "./store/private-files.ts";

/** Copies all pages in one step, because a backup in several steps starts over whenever the service writes. */
const ALL_PAGES = 2 ** 31 - 1;

async function run(to: string | undefined): Promise<string> {
  const { dataDir, redisUrl } = readConfig(process.env, await loadModules(PLATFORMS));
  const source = join(dataDir, "palaver.sqlite");
  if (!existsSync(source)) throw new Error(`There is no database at ${source}. Check DATA_DIR.`);
  const folder = join(dataDir, "backups");
  const path = to ?? join(folder, `palaver-${new Date().toISOString().replace(/[:.]/g, "-")}.sqlite`);
  if (existsSync(path)) throw new Error(`${path} already exists. Name another file.`);
  if (to === undefined) createFolder(folder);
  const database = openForReading(source);
  await backup(database, path, { rate: ALL_PAGES });
  database.close();
  chmodSync(path, 0o600);
  const inRedis = "\nREDIS_URL is set: most of the data is in Redis. docs/operations.md says how to back up Redis.";
  return `The backup is in ${path}.${redisUrl === undefined ? "" : inRedis}`;
}

try {
  // Only this user can read the backup.
  process.umask(0o077);
  process.stdout.write(`${await run(process.argv[2])}\n`);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : "The backup failed."}\n`);
  process.exitCode = 1;
}
