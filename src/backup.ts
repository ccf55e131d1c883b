/** `npm run backup`: a consistent copy of the SQLite file, also while the service runs. */
import { chmodSync, existsSync } from "node:fs";
import { join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { readConfig } from "./config/config.ts";
import { createFolder } from "./store/private-files.ts";

/** Copied in one step: a step in between would begin anew with each write of the service. */
const ALL_PAGES = 2 ** 31 - 1;

async function run(to: string | undefined): Promise<string> {
  const { dataDir, redisUrl } = readConfig(process.env);
  const source = join(dataDir, "palaver.sqlite");
  if (!existsSync(source)) throw new Error(`There is no database at ${source} yet: check DATA_DIR.`);
  const folder = join(dataDir, "backups");
  const path = to ?? join(folder, `palaver-${new Date().toISOString().replace(/[:.]/g, "-")}.sqlite`);
  if (existsSync(path)) throw new Error(`${path} exists already. Name another file.`);
  if (to === undefined) createFolder(folder);
  const database = new DatabaseSync(source, { readOnly: true });
  await backup(database, path, { rate: ALL_PAGES });
  database.close();
  chmodSync(path, 0o600);
  const inRedis = "\nREDIS_URL is set: most of the data is in Redis. docs/operations.md says how to back that up.";
  return `The copy is in ${path}.${redisUrl === undefined ? "" : inRedis}`;
}

try {
  // Nobody else may read the copy.
  process.umask(0o077);
  process.stdout.write(`${await run(process.argv[2])}\n`);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : "The backup failed."}\n`);
  process.exitCode = 1;
}
