import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { message } from "../../lab/support/events.ts";
import { silent } from "../../lab/support/log.ts";
import { noFiles } from "../../lab/support/picture-turn.ts";
import { isRedisMissing, type RedisServer, startRedis } from "../../lab/support/redis.ts";
import { PROCESS_ENV } from "../../lab/support/service.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createStores } from "../../src/store/keyv.ts";
import { newRecord } from "../../src/turn/record.ts";
import { createTurnRecords } from "../../src/turn/records.ts";
import { createUsage } from "../../src/usage/usage.ts";

const TIMES = 60;

describe.skipIf(isRedisMissing)("two processes that count at once (needs redis-server)", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  async function startCounting(name: string): Promise<ChildProcess> {
    const child = spawn(process.execPath, ["test/support/counting-process.ts", redis.url, name, String(TIMES)], {
      env: PROCESS_ENV,
      stdio: ["pipe", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    await once(child.stdout, "data");
    return child;
  }

  test("two processes that count at once lose no usage and no rating", async () => {
    const { open, inTurn, counters, close } = createStores(
      {
        redisUrl: redis.url,
        database: new DatabaseSync(":memory:"),
        log: silent,
      },
      NO_RIGHT,
    );
    onTestFinished(close);
    const common = { open, inTurn, ttlMs: 60_000, log: silent };
    const [records, usage] = [
      createTurnRecords({ ...common, files: noFiles }),
      createUsage({ counters, log: silent, now: Date.now }),
    ];
    const question = message("tea?");
    await records.save({ ...newRecord([question], [question]), id: "one" });

    const processes = await Promise.all(["first", "second"].map(startCounting));
    const ended = processes.map((child) => once(child, "exit"));
    for (const child of processes) child.stdin?.write("go\n");
    await Promise.all(ended);

    expect(await usage.readMonth({ platform: "test", channelId: "general" })).toMatchObject({ answers: 2 * TIMES });
    expect(Object.keys((await records.load("one"))?.feedback ?? {})).toHaveLength(2 * TIMES);
  });
});
