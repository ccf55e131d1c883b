import { randomUUID } from "node:crypto";
import { pino } from "pino";
import { describeError } from "../port/errors.ts";
import type { Finding } from "../port/finding.ts";
import { GIVEN_UP_KEY, readGivenUp } from "../queue/given-up.ts";
import { CLUSTER_REFUSAL, checkVersion as checkDataVersion, isCluster } from "../store/redis.ts";
import { connectToRedis, type RedisConnection } from "../store/redis-connection.ts";

const TRIAL_MS = 10_000;
/** Palaver's scripts need Redis 5.0 and `SCAN … TYPE` needs 6.0. Versions before 6.2 are not tested. */
const LEAST_VERSION = { major: 6, minor: 2 };

/**
 * Tests Redis as the service uses it, and checks whether stored data can be lost. A problem with Redis becomes a
 * finding, not a rejection.
 */
export async function checkRedis(url: string): Promise<Finding[]> {
  const connection = connectToRedis(url, pino({ level: "silent" }));
  try {
    // Ignore failures, because the write test below reports them.
    if (await connection.run(() => isCluster(connection.client)).catch(() => false)) {
      return [{ ok: false, what: CLUSTER_REFUSAL }];
    }
    const written = await tryToWrite(connection);
    if (!written.ok) return [written];
    const { refusal } = await connection.run(() => checkDataVersion(connection.client, url));
    if (refusal !== undefined) return [{ ok: false, what: refusal }];
    return [
      written,
      await checkPersistence(connection),
      await checkEviction(connection),
      await checkVersion(connection),
      ...(await checkGivenUp(connection)),
    ];
  } finally {
    await connection.close();
  }
}

async function tryToWrite({ client, run }: RedisConnection): Promise<Finding> {
  const key = `palaver:doctor:${randomUUID()}`;
  try {
    await run(() => client.set(key, key, { expiration: { type: "PX", value: TRIAL_MS } }));
    const found = await run(() => client.get(key));
    await run(() => client.del(key));
    if (found === key) return { ok: true, what: "Redis answers and accepts writes." };
    return {
      ok: false,
      what: "Redis does not return the value just written.",
      fix: "Check its memory and its replicas.",
    };
  } catch (error) {
    const words = describeError(error);
    return words.startsWith("Redis at")
      ? { ok: false, what: words }
      : {
          ok: false,
          what: `Redis refuses writes (${words}).`,
          fix: "Check the user, the password and REDIS_URL.",
        };
  }
}

async function checkPersistence({ client, run }: RedisConnection): Promise<Finding> {
  const info = readInfo(await run(() => client.info("persistence")));
  if (info.get("rdb_last_bgsave_status") === "err" || info.get("aof_last_write_status") === "err") {
    return { ok: false, what: "Redis cannot write to its disk.", fix: "Check its log and the free space on its disk." };
  }
  if (info.get("aof_enabled") === "1") return describeSync(await readSetting({ client, run }, "appendfsync"));
  const save = await readSetting({ client, run }, "save");
  if (save === undefined) {
    return { ok: true, what: "This server does not show whether Redis keeps its data on disk; ask its operator." };
  }
  if (save === "") {
    return {
      ok: false,
      what: "Redis keeps nothing on disk: conversations are lost when it stops.",
      fix: "Switch on appendonly (appendonly yes in redis.conf).",
    };
  }
  return {
    ok: true,
    what: "Redis saves to its disk only at intervals: a crash can lose the last minutes (appendonly is safer).",
  };
}

/**
 * Checks how often Redis writes to disk. A platform does not redeliver a message that Palaver has stored, so a lost
 * write loses the message.
 */
function describeSync(appendfsync: string | undefined): Finding {
  if (appendfsync === "no") {
    return {
      ok: false,
      what: "Redis lets the system decide when writes reach the disk (appendfsync no): if the machine crashes, half a minute of accepted messages can be lost.",
      fix: "Set appendfsync to everysec or always.",
    };
  }
  const lost =
    appendfsync === "everysec" ? "; if the machine crashes, the last second can be lost (appendfsync everysec)" : "";
  return { ok: true, what: `Redis writes every change to its disk (appendonly)${lost}.` };
}

async function checkVersion({ client, run }: RedisConnection): Promise<Finding> {
  const info = readInfo(await run(() => client.info("server")));
  return describeVersion(info.get("redis_version"));
}

/** Valkey reports the Redis version with which it is compatible. */
export function describeVersion(version: string | undefined): Finding {
  if (version === undefined)
    return { ok: true, what: "Redis does not report its version; Palaver needs 6.2 or later." };
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isNew = major > LEAST_VERSION.major || (major === LEAST_VERSION.major && minor >= LEAST_VERSION.minor);
  const least = `${LEAST_VERSION.major}.${LEAST_VERSION.minor}`;
  if (isNew) return { ok: true, what: `Redis ${version} is new enough (${least} or later).` };
  return {
    ok: false,
    what: `Redis ${version} is too old: Palaver is tested with ${least} or later, and needs SCAN … TYPE, which came with 6.0.`,
    fix: `Use Redis ${least} or later, or Valkey.`,
  };
}

async function checkEviction({ client, run }: RedisConnection): Promise<Finding> {
  const info = readInfo(await run(() => client.info("memory")));
  const policy = info.get("maxmemory_policy");
  const isBounded = Number(info.get("maxmemory") ?? 0) > 0;
  if (policy === undefined)
    return { ok: true, what: "This server does not show whether Redis evicts keys; ask its operator." };
  if (policy === "noeviction" || !isBounded) return { ok: true, what: "Redis evicts no keys before they expire." };
  return {
    ok: false,
    what: `Redis evicts keys when its memory is full (maxmemory-policy ${policy}): conversations and unanswered messages can be lost.`,
    fix: "Set maxmemory-policy to noeviction.",
  };
}

/** Reports events that Palaver gave up on. Their authors have been notified. */
async function checkGivenUp({ client, run }: RedisConnection): Promise<Finding[]> {
  const given = await run(() => readGivenUp(client));
  const [newest] = given;
  if (newest === undefined) return [];
  const { key, kind, laneId, at, reason } = newest;
  const when = new Date(at).toISOString();
  return [
    {
      ok: false,
      what: `Palaver gave up on ${given.length} ${given.length === 1 ? "event" : "events"}; the latest, ${when}: ${kind} ${key} in ${laneId} (${reason})`,
      fix: `Check the log from that time; "DEL ${GIVEN_UP_KEY}" in redis-cli clears this list.`,
    },
  ];
}

/** Resolves to undefined if the server hides its settings, as hosted servers often do. */
async function readSetting({ client, run }: Pick<RedisConnection, "client" | "run">, name: string) {
  try {
    const settings = await run(() => client.configGet(name));
    return settings[name];
  } catch {
    return undefined;
  }
}

function readInfo(text: string): Map<string, string> {
  const lines = text.split(/\r?\n/).filter((line) => line.includes(":"));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]));
}
