import { randomUUID } from "node:crypto";
import { pino } from "pino";
import type { Finding } from "../port/finding.ts";
import { readKept } from "../queue/redis-kept.ts";
import { KEYS } from "../queue/redis-keys.ts";
import { connectToRedis, type RedisConnection } from "../store/redis-connection.ts";

const TRIAL_MS = 10_000;

/** Tries Redis as the service uses it, and asks whether it would lose what is stored there. Resolves whatever is wrong. */
export async function checkRedis(url: string): Promise<Finding[]> {
  const connection = connectToRedis(url, pino({ level: "silent" }));
  try {
    const written = await tryToWrite(connection);
    if (!written.ok) return [written];
    const kept = await checkKept(connection);
    return [written, await checkPersistence(connection), await checkEviction(connection), ...kept];
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
    const words = error instanceof Error ? error.message : String(error);
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
  if (info.get("aof_enabled") === "1") return { ok: true, what: "Redis keeps every write on its disk (appendonly)." };
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

async function checkEviction({ client, run }: RedisConnection): Promise<Finding> {
  const info = readInfo(await run(() => client.info("memory")));
  const policy = info.get("maxmemory_policy");
  const isBounded = Number(info.get("maxmemory") ?? 0) > 0;
  if (policy === undefined)
    return { ok: true, what: "Whether Redis throws keys away is not told; ask whoever runs it." };
  if (policy === "noeviction" || !isBounded) return { ok: true, what: "Redis throws no keys away before their time." };
  return {
    ok: false,
    what: `Redis throws keys away when its memory is full (maxmemory-policy ${policy}), and conversations with them.`,
    fix: "Set maxmemory-policy to noeviction.",
  };
}

/** What the queue gave up, to be looked into: who asked was told so. */
async function checkKept({ client, run }: RedisConnection): Promise<Finding[]> {
  const kept = await run(() => readKept(client));
  const [newest] = kept;
  if (newest === undefined) return [];
  const { key, kind, laneId, at, reason } = newest;
  const when = new Date(at).toISOString();
  return [
    {
      ok: false,
      what: `${kept.length} ${kept.length === 1 ? "event was" : "events were"} given up; the last one, ${when}: ${kind} ${key} in ${laneId} (${reason})`,
      fix: `Look into the log of that time; "DEL ${KEYS.kept}" in redis-cli clears this list.`,
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
