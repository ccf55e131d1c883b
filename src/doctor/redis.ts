import { randomUUID } from "node:crypto";
import { pino } from "pino";
import { describeError } from "../port/errors.ts";
import type { Finding } from "../port/finding.ts";
import { readGivenUp } from "../queue/redis/given-up.ts";
import { KEYS } from "../queue/redis/keys.ts";
import { CLUSTER_REFUSAL, isCluster } from "../store/redis.ts";
import { connectToRedis, type RedisConnection } from "../store/redis-connection.ts";

const TRIAL_MS = 10_000;
/** The oldest version that BullMQ supports (`recommendedMinimumVersion`); older ones were not tried. */
const LEAST_VERSION = { major: 6, minor: 2 };

/** Tries Redis as the service uses it, and asks whether it would lose what is stored there. Resolves whatever is wrong. */
export async function checkRedis(url: string): Promise<Finding[]> {
  const connection = connectToRedis(url, pino({ level: "silent" }));
  try {
    // The trial below reports a Redis that is away or refuses.
    if (await connection.run(() => isCluster(connection.client)).catch(() => false)) {
      return [{ ok: false, what: CLUSTER_REFUSAL }];
    }
    const written = await tryToWrite(connection);
    if (!written.ok) return [written];
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
    if (found === key) return { ok: true, what: "Redis answers, and can be written to." };
    return {
      ok: false,
      what: "Redis does not give back what was written.",
      fix: "Look at its memory and its replicas.",
    };
  } catch (error) {
    const words = describeError(error);
    return words.startsWith("Redis at")
      ? { ok: false, what: words }
      : {
          ok: false,
          what: `Redis refuses to be written to (${words}).`,
          fix: "Check the user, the password and REDIS_URL.",
        };
  }
}

async function checkPersistence({ client, run }: RedisConnection): Promise<Finding> {
  const info = readInfo(await run(() => client.info("persistence")));
  if (info.get("rdb_last_bgsave_status") === "err" || info.get("aof_last_write_status") === "err") {
    return { ok: false, what: "Redis cannot write to its disk.", fix: "Look at its log and at the room on its disk." };
  }
  if (info.get("aof_enabled") === "1") return describeSync(await readSetting({ client, run }, "appendfsync"));
  const save = await readSetting({ client, run }, "save");
  if (save === undefined) {
    return { ok: true, what: "Whether Redis keeps its data on a disk is not told; ask whoever runs it." };
  }
  if (save === "") {
    return {
      ok: false,
      what: "Redis keeps nothing on a disk: conversations are gone when it ends.",
      fix: "Switch appendonly on (appendonly yes in redis.conf).",
    };
  }
  return {
    ok: true,
    what: "Redis saves to its disk now and then: the last minutes may be lost (appendonly is safer).",
  };
}

/** A platform is told that a message has arrived once Redis has it: then nobody delivers it again. */
function describeSync(appendfsync: string | undefined): Finding {
  if (appendfsync === "no") {
    return {
      ok: false,
      what: "Redis leaves it to the system when writes reach the disk (appendfsync no): half a minute of accepted messages may be lost with the machine.",
      fix: "Set appendfsync to everysec, or to always.",
    };
  }
  const lost =
    appendfsync === "everysec" ? "; the last second may be lost with the machine (appendfsync everysec)" : "";
  return { ok: true, what: `Redis keeps every write on its disk (appendonly)${lost}.` };
}

async function checkVersion({ client, run }: RedisConnection): Promise<Finding> {
  const info = readInfo(await run(() => client.info("server")));
  return describeVersion(info.get("redis_version"));
}

/** A Valkey says here which Redis it is compatible with. */
export function describeVersion(version: string | undefined): Finding {
  if (version === undefined) return { ok: true, what: "Redis does not tell its version; it has to be 6.2 or later." };
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isNew = major > LEAST_VERSION.major || (major === LEAST_VERSION.major && minor >= LEAST_VERSION.minor);
  const least = `${LEAST_VERSION.major}.${LEAST_VERSION.minor}`;
  if (isNew) return { ok: true, what: `Redis ${version} is new enough (${least} or later).` };
  return {
    ok: false,
    what: `Redis ${version} is too old: the queue (BullMQ) is made for ${least} or later, and what is stored is found with SCAN … TYPE, which came with 6.0.`,
    fix: `Use Redis ${least} or later, or Valkey.`,
  };
}

async function checkEviction({ client, run }: RedisConnection): Promise<Finding> {
  const info = readInfo(await run(() => client.info("memory")));
  const policy = info.get("maxmemory_policy");
  const isBounded = Number(info.get("maxmemory") ?? 0) > 0;
  if (policy === undefined)
    return { ok: true, what: "Whether Redis throws keys away is not told; ask whoever runs it." };
  if (policy === "noeviction" || !isBounded) return { ok: true, what: "Redis throws no keys away before their time." };
  return {
    ok: false,
    what: `Redis throws keys away when its memory is full (maxmemory-policy ${policy}): conversations, and messages that were accepted and not answered yet.`,
    fix: "Set maxmemory-policy to noeviction.",
  };
}

/** Reports the events that the queue gave up. The people who asked were told. */
async function checkGivenUp({ client, run }: RedisConnection): Promise<Finding[]> {
  const given = await run(() => readGivenUp(client));
  const [newest] = given;
  if (newest === undefined) return [];
  const { key, kind, laneId, at, reason } = newest;
  const when = new Date(at).toISOString();
  return [
    {
      ok: false,
      what: `${given.length} ${given.length === 1 ? "event was" : "events were"} given up; the last one, ${when}: ${kind} ${key} in ${laneId} (${reason})`,
      fix: `Look into the log of that time; "DEL ${KEYS.givenUp}" in redis-cli clears this list.`,
    },
  ];
}

/** Undefined where the server does not let its settings be read, as hosted ones often do. */
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
