import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createClient } from "@keyv/redis";
import { describe, expect, onTestFinished, test } from "vitest";
import { isRedisMissing, startRedis } from "../../lab/support/redis.ts";
import { makeDataDir, PROCESS_ENV, ROOT } from "../../lab/support/service.ts";

const OLDER = "holds data from a Palaver before 0.3, which this version cannot read: run version 0.2 to keep using it";
const PROGRAMS = [["src/main.ts"], ["src/doctor.ts", "--no-chat"]];

/** Runs a program until it exits. If a service starts, that is a failure, and this kills it. */
async function run([file = "", ...args]: readonly string[], env: Record<string, string>) {
  const folder = await makeDataDir();
  onTestFinished(folder.remove);
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", join(ROOT, file), ...args], {
    cwd: folder.path,
    env: { ...PROCESS_ENV, PORT: "0", LOCAL_CHAT: "on", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (data) => {
      output += String(data);
      if (output.includes("Palaver is ready")) child.kill();
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}

describe("data of a version before 0.3", () => {
  test.each([...PROGRAMS, ["src/backup.ts"]].map((args) => [args.join(" "), args]))(
    "the program %s refuses data of an older version in SQLite",
    async (_, args) => {
      const { path, remove } = await makeDataDir();
      onTestFinished(remove);
      const file = join(path, "palaver.sqlite");
      const database = new DatabaseSync(file);
      database.exec("PRAGMA user_version = 1; CREATE TABLE keyv (key TEXT PRIMARY KEY, value TEXT NOT NULL)");
      database.close();
      const { code, output } = await run(args, { DATA_DIR: path });
      expect(output).toContain(`The database ${file} ${OLDER}, or move the file away`);
      expect(code).toBe(1);
    },
  );

  test.skipIf(isRedisMissing).each(PROGRAMS.map((args) => [args.join(" "), args]))(
    "the program %s refuses data of an older version in Redis (needs redis-server)",
    async (_, args) => {
      const [redis, { path, remove }] = await Promise.all([startRedis({ password: "canary-word" }), makeDataDir()]);
      onTestFinished(remove);
      onTestFinished(redis.stop);
      const client = createClient({ url: redis.url });
      await client.connect();
      await client.set("palaver:identity:pseudonym-key", '{"value":"a key"}');
      await client.close();
      const { code, output } = await run(args, { DATA_DIR: path, REDIS_URL: redis.url });
      expect(output).toContain(`(REDIS_URL) ${OLDER}, or end REDIS_URL with the number of an empty database`);
      expect(output).not.toContain("canary-word");
      expect(code).toBe(1);
    },
  );
});
