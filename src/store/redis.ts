import KeyvRedis from "@keyv/redis";
import type { Logger } from "pino";
import type { Clock } from "./clock.ts";
import { connectToRedis, type RedisConnection } from "./redis-connection.ts";
import type { BatchStore } from "./sqlite.ts";

/** Keys that one step of a walk through the whole server looks at. */
const SCAN_COUNT = 1_000;
/** What is written to see whether the server takes anything. */
const PROBE_KEY = "palaver:probe";
const PROBE_TTL_MS = 10_000;
const CLOCK_KEPT_MS = 60_000;

/** What processes with queues of their own share: marks that only one of them can set. */
export interface Marks {
  /** Sets the mark for this long where there is none. Resolves to the one that stands there. */
  claim(key: string, mark: string, ttlMs: number): Promise<string>;
  set(key: string, mark: string, ttlMs: number): Promise<void>;
}

/** A store with what belongs to it. */
export interface OpenStore {
  store: BatchStore;
  /** The time by which things grow old in it. */
  now: Clock;
  /** Absent where no other process can share the store. */
  marks?: Marks;
  /** Whether it takes a write, which is tried. Never rejects. */
  isReachable: () => Promise<boolean>;
  close: () => Promise<void>;
}

/**
 * A Keyv store on Redis or Valkey. During an outage every operation rejects within two seconds, so that it can never
 * be taken for "nothing stored". Keys are used as they are given: namespaces are the caller's, `{namespace}:` in front.
 */
export function createRedisStore(url: string, log: Logger): OpenStore {
  const { connection, now } = withServerClock(connectToRedis(url, log));
  return {
    store: createBoundStore(connection),
    now,
    marks: createMarks(connection),
    isReachable: () =>
      connection
        // A server that only reads, or whose memory is full, still answers a ping.
        .run(() => connection.client.set(PROBE_KEY, "1", { expiration: { type: "PX", value: PROBE_TTL_MS } }))
        .then(
          () => true,
          () => false,
        ),
    close: connection.close,
  };
}

/**
 * Processes that share a server share its clock, by which it expires things itself. It is asked before the first
 * operation, and then again now and then; in between, time runs evenly here.
 */
function withServerClock({ client, run, close }: RedisConnection): { connection: RedisConnection; now: Clock } {
  let known: { serverMs: number; steadyMs: number } | undefined;

  async function look(): Promise<void> {
    // Where the server does not say, as to a user who may not ask, the operation itself shows what is wrong.
    const answer = await client.sendCommand(["TIME"]).catch(() => undefined);
    const [seconds, microseconds] = Array.isArray(answer) ? answer.map(Number) : [];
    const serverMs = seconds === undefined ? now() : seconds * 1_000 + (microseconds ?? 0) / 1_000;
    known = { serverMs, steadyMs: performance.now() };
  }

  function now(): number {
    return known === undefined ? Date.now() : Math.floor(known.serverMs + performance.now() - known.steadyMs);
  }

  return {
    now,
    connection: {
      client,
      close,
      run: (operation) =>
        run(async () => {
          if (known === undefined || performance.now() - known.steadyMs > CLOCK_KEPT_MS) await look();
          return operation();
        }),
    },
  };
}

function createMarks({ client, run }: RedisConnection): Marks {
  return {
    async claim(key, mark, ttlMs) {
      const options = { condition: "NX", expiration: { type: "PX", value: ttlMs } } as const;
      if ((await run(() => client.set(key, mark, options))) !== null) return mark;
      // It may have expired since; then the next look finds none.
      return (await run(() => client.get(key))) ?? "pending:";
    },
    async set(key, mark, ttlMs) {
      await run(() => client.set(key, mark, { expiration: { type: "PX", value: ttlMs } }));
    },
  };
}

function createBoundStore({ client, run }: RedisConnection): BatchStore {
  const adapter = new KeyvRedis<string>(client, {
    throwOnErrors: true,
    throwOnConnectError: true,
    useUnlink: true,
  });
  // The client's own listener logs; without one the adapter would throw inside an event handler.
  adapter.on("error", () => {});

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
    get: (key: string) => run(() => adapter.get<string>(key)),
    getMany: (keys: string[]) => run(() => adapter.getMany<string>(keys)),
    set: (key: string, value: string, ttl?: number) => run(() => adapter.set(key, value, ttl)),
    setMany: (entries: Array<{ key: string; value: string; ttl?: number }>) => run(() => adapter.setMany(entries)),
    delete: (key: string) => run(() => adapter.delete(key)),
    deleteMany: (keys: string[]) => run(() => adapter.deleteMany(keys)),
    has: (key: string) => run(() => adapter.has(key)),
    hasMany: (keys: string[]) => run(() => adapter.hasMany(keys)),
    async clear() {
      for await (const [key] of iterator()) await run(() => adapter.delete(key));
    },
    async disconnect() {},
  };
  return store as unknown as BatchStore;
}

function escapeGlob(text: string): string {
  return text.replace(/[*?[\]\\^]/g, String.raw`\$&`);
}
