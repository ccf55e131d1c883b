import { statSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@keyv/redis";
import { type Logger, pino } from "pino";
import { NO_RIGHT } from "../../../src/port/right.ts";
import { openDatabase } from "../../../src/store/database.ts";
import { createStores, type Stores } from "../../../src/store/keyv.ts";
import { isRedisMissing, startRedis } from "../../support/redis.ts";
import { makeDataDir } from "../../support/service.ts";

export interface MeasuredStore {
  name: string;
  open: Stores["open"];
  /** Runs `fill` without waiting for the disk. */
  fill(fill: () => Promise<void>): Promise<void>;
  /** Resolves to the number of bytes that the store writes to disk, or exchanges over the network, during `work`. */
  countBytes(work: () => Promise<void>): Promise<number>;
}

export const log: Logger = pino({ level: "silent" });

/** Starts every store that this machine has. */
export async function startStores(resources: AsyncDisposableStack): Promise<MeasuredStore[]> {
  const sqlite = await startSqlite(resources);
  return isRedisMissing ? [sqlite] : [sqlite, await startRedisStore(resources)];
}

async function startSqlite(resources: AsyncDisposableStack): Promise<MeasuredStore> {
  const { path: folder, remove } = await makeDataDir();
  resources.defer(remove);
  const path = join(folder, "palaver.sqlite");
  const database = openDatabase(path);
  resources.defer(() => database.close());
  const { open, close } = createStores({ redisUrl: undefined, database, log }, NO_RIGHT);
  resources.defer(close);
  return {
    name: "SQLite",
    open,
    async fill(fill) {
      database.exec("PRAGMA synchronous = OFF");
      await fill();
      database.exec("PRAGMA synchronous = FULL");
    },
    async countBytes(work) {
      // With an empty log and no checkpoints, the log grows by exactly the written bytes.
      database.exec("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA wal_autocheckpoint = 0");
      await work();
      return statSync(`${path}-wal`).size;
    },
  };
}

async function startRedisStore(resources: AsyncDisposableStack): Promise<MeasuredStore> {
  const server = await startRedis();
  resources.defer(() => server.stop());
  const database = openDatabase(":memory:");
  resources.defer(() => database.close());
  const { open, close } = createStores({ redisUrl: server.url, database, log }, NO_RIGHT);
  resources.defer(close);
  const observer = createClient({ url: server.url });
  await observer.connect();
  resources.defer(() => observer.close());

  const countTraffic = async (): Promise<number> => readTraffic(await observer.info("stats"));
  return {
    name: "Redis",
    open,
    fill: (fill) => fill(),
    async countBytes(work) {
      // Subtract the bytes of the measurement itself.
      const own = (await countTraffic()) - (await countTraffic());
      const before = await countTraffic();
      await work();
      return (await countTraffic()) - before + own;
    },
  };
}

function readTraffic(info: string): number {
  const read = (field: string): number => Number(new RegExp(`^${field}:(\\d+)`, "m").exec(info)?.[1]);
  return read("total_net_input_bytes") + read("total_net_output_bytes");
}
