import { statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@keyv/redis";
import { type Logger, pino } from "pino";
import { openDatabase } from "../../src/store/database.ts";
import { createStores, type Stores } from "../../src/store/keyv.ts";
import { isRedisMissing, startRedis } from "../../test/support/redis.ts";

/** A store whose traffic can be counted. */
export interface MeasuredStore {
  name: string;
  open: Stores["open"];
  /** Runs `fill` without waiting for the disk. */
  fill(fill: () => Promise<void>): Promise<void>;
  /** Bytes that `work` makes the store write to its disk, or sends to it and gets from it over the network. */
  countBytes(work: () => Promise<void>): Promise<number>;
}

export const log: Logger = pino({ level: "silent" });

/** Every store this machine has. */
export async function startStores(resources: AsyncDisposableStack): Promise<MeasuredStore[]> {
  const sqlite = await startSqlite(resources);
  return isRedisMissing ? [sqlite] : [sqlite, await startRedisStore(resources)];
}

async function startSqlite(resources: AsyncDisposableStack): Promise<MeasuredStore> {
  const folder = await mkdtemp(join(tmpdir(), "palaver-bench-"));
  resources.defer(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, "palaver.sqlite");
  const database = openDatabase(path);
  resources.defer(() => database.close());
  const { open, close } = createStores({ redisUrl: undefined, database, log });
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
      // An empty log that nobody copies away meanwhile grows by exactly what is written.
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
  const { open, close } = createStores({ redisUrl: server.url, database, log });
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
      // Asking is traffic too: what one question adds is taken off.
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
