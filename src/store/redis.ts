import type { Logger } from "pino";
import { fencesHeld } from "../concurrency/fence.ts";
import type { Clock } from "./clock.ts";
import { evalFenced } from "./fenced-script.ts";
import { StoreError } from "./outage.ts";
import { connectToRedis, loadRedis, probe, type RedisConnection } from "./redis-connection.ts";
import type { BatchStore } from "./sqlite.ts";

/** Keys that one step of a walk through the whole server looks at. */
const SCAN_COUNT = 1_000;
const CLOCK_KEPT_MS = 60_000;

export interface OpenStore {
  store: BatchStore;
  /** The time by which things grow old in it. */
  now: Clock;
  /** Resolves once a server has told its time; undefined: `now` knows it. */
  untilTimed?: () => Promise<void> | undefined;
  /** Absent where no other process can share the store. */
  shared?: RedisConnection;
  /** Tries a write and resolves to whether the store took it. Never rejects. */
  isReachable: () => Promise<boolean>;
  close: () => Promise<void>;
}

/**
 * A Keyv store on Redis or Valkey. During an outage every operation rejects within two seconds, so that it can never
 * be taken for "nothing stored". Keys are used as they are given: namespaces are the caller's, `{namespace}:` in front.
 */
export function createRedisStore(url: string, log: Logger): OpenStore {
  const { connection, now, untilTimed } = withServerClock(connectToRedis(url, log));
  return {
    store: createBoundStore(connection),
    now,
    untilTimed,
    shared: connection,
    isReachable: () =>
      connection
        .run(() => probe(connection.client))
        .then(
          () => true,
          () => false,
        ),
    close: connection.close,
  };
}

/** Uses the server's clock, which expires its keys: asked at the start and now and then, run evenly in between. */
function withServerClock(connection: RedisConnection) {
  const { client, run } = connection;
  let known: { serverMs: number; steadyMs: number } | undefined;

  async function look(): Promise<void> {
    if (known === undefined && (await isCluster(client))) throw new StoreError(CLUSTER_REFUSAL);
    // A server may refuse to tell its time, to a user without the right: the operation itself shows what is wrong.
    const answer = await client.sendCommand(["TIME"]).catch(() => undefined);
    const [seconds, microseconds] = Array.isArray(answer) ? answer.map(Number) : [];
    const serverMs = seconds === undefined ? now() : seconds * 1_000 + (microseconds ?? 0) / 1_000;
    known = { serverMs, steadyMs: performance.now() };
  }

  function now(): number {
    return known === undefined ? Date.now() : Math.floor(known.serverMs + performance.now() - known.steadyMs);
  }

  const timed: RedisConnection = {
    ...connection,
    run: (operation, on) =>
      run(async () => {
        if (known === undefined || performance.now() - known.steadyMs > CLOCK_KEPT_MS) await look();
        return operation();
      }, on),
  };
  const untilTimed = () => (known === undefined ? timed.run(async () => {}) : undefined);
  return { now, untilTimed, connection: timed };
}

/** Several keys are changed in one step, which a cluster allows for keys of one slot only. */
export const CLUSTER_REFUSAL =
  "REDIS_URL names a node of a Redis Cluster, which Palaver cannot use: it changes several keys in one step, and a cluster spreads them over its nodes. Use a single primary, with replicas where you like.";

/** False also where the server does not tell. */
export async function isCluster(client: RedisConnection["client"]): Promise<boolean> {
  const info = await client.info("cluster").catch(() => "");
  return info.includes("cluster_enabled:1");
}

function createBoundStore({ client, run }: RedisConnection): BatchStore {
  const { default: KeyvRedis } = loadRedis();
  const adapter = new KeyvRedis<string>(client, {
    throwOnErrors: true,
    throwOnConnectError: true,
    useUnlink: true,
  });
  // The client's own listener logs; without one the adapter would throw inside an event handler.
  adapter.on("error", () => {});

  /** Under a fence, checks it in the same step. Resolves to whether something was stored there. */
  function write(entries: readonly Entry[], unfenced: () => Promise<boolean>): Promise<boolean> {
    if (fencesHeld().length === 0 || entries.length === 0) return run(unfenced);
    return run(async () => (await writeFenced(client, entries)) > 0);
  }

  /** The adapter's own iterator looks at ten keys a step, which is slow on a server that holds many. */
  async function* iterator(namespace?: string): AsyncGenerator<[string, string], void> {
    const match = namespace === undefined ? "*" : `${escapeGlob(namespace)}:*`;
    let cursor = "0";
    do {
      const page = await run(() => client.scan(cursor, { MATCH: match, COUNT: SCAN_COUNT, TYPE: "string" }));
      cursor = page.cursor;
      const values = page.keys.length === 0 ? [] : await run(() => adapter.getMany<string>(page.keys));
      for (const [index, key] of page.keys.entries()) {
        const value = values[index];
        // It may have expired since the key was listed.
        if (typeof value === "string") yield [key, value];
      }
    } while (cursor !== "0");
  }

  const store = {
    opts: { dialect: "redis", url: "redis://" },
    namespace: undefined,
    on: adapter.on.bind(adapter),
    iterator,
    // MGET reads what is no text as absent, while GET fails.
    get: async (key: string) => (await run(() => adapter.getMany<string>([key])))[0],
    getMany: (keys: string[]) => run(() => adapter.getMany<string>(keys)),
    set: (key: string, value: string, ttl?: number) =>
      write([{ key, value, ttl }], () => adapter.set(key, value, ttl).then(() => true)),
    setMany: (entries: Array<{ key: string; value: string; ttl?: number }>) =>
      write(entries, () => adapter.setMany(entries).then(() => true)),
    delete: (key: string) => write([{ key }], () => adapter.delete(key)),
    deleteMany: (keys: string[]) => write(keys.map(toRemoval), () => adapter.deleteMany(keys)),
    has: (key: string) => run(() => adapter.has(key)),
    hasMany: (keys: string[]) => run(() => adapter.hasMany(keys)),
    async clear() {
      for await (const [key] of iterator()) await run(() => adapter.delete(key));
    },
    async disconnect() {},
  };
  return store as unknown as BatchStore;
}

interface Entry {
  key: string;
  /** Absent: the key is removed. */
  value?: string;
  ttl?: number | undefined;
}

const toRemoval = (key: string): Entry => ({ key });

const WRITE = `
local changed = 0
for index = 1, #KEYS do
  local operation, value, ttl = ARGV[3 * index - 2], ARGV[3 * index - 1], ARGV[3 * index]
  if operation == 'delete' then
    changed = changed + redis.call('UNLINK', KEYS[index])
  else
    if ttl == '' then redis.call('SET', KEYS[index], value)
    else redis.call('SET', KEYS[index], value, 'PX', ttl) end
    changed = changed + 1
  end
end
return changed`;

async function writeFenced(client: RedisConnection["client"], entries: readonly Entry[]): Promise<number> {
  const operations = entries.flatMap(({ value, ttl }) =>
    value === undefined ? ["delete", "", ""] : ["set", value, ttl === undefined ? "" : String(Math.ceil(ttl))],
  );
  const keys = entries.map(({ key }) => key);
  return Number(await evalFenced(client, WRITE, keys, operations));
}

function escapeGlob(text: string): string {
  return text.replace(/[*?[\]\\^]/g, String.raw`\$&`);
}
