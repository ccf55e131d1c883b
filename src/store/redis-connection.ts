import { createClient } from "@keyv/redis";
import type { Logger } from "pino";

/** Longest time one operation takes, the wait for a lost connection to come back included. */
const OPERATION_TIMEOUT_MS = 2_000;
const CONNECT_TIMEOUT_MS = 2_000;
/** A connection on which nothing moves for this long is dead; pings keep a living one moving. */
const SOCKET_TIMEOUT_MS = 10_000;
const PING_INTERVAL_MS = 3_000;
const CLOSE_TIMEOUT_MS = 1_000;
const RECONNECT_MIN_MS = 20;
const RECONNECT_MAX_MS = 1_000;

export type RedisClient = ReturnType<typeof createRedisClient>;

export interface RedisConnection {
  client: RedisClient;
  /**
   * Runs an operation on the client as soon as it is connected. Rejects after two seconds at most, whatever state the
   * connection is in; an operation that was not begun by then never begins.
   */
  run: <T>(operation: () => Promise<T>) => Promise<T>;
  close: () => Promise<void>;
}

/** A connection that is kept for good: it is made in the background, and again whenever it is lost. */
export function connectToRedis(url: string, log: Logger): RedisConnection {
  const where = describeAddress(url);
  const client = createRedisClient(url);
  const { whenReady, reportOutage, describeOutage } = watchConnection(client, where, log);
  let closed = false;

  function connect(): void {
    // Rejects only when it is closed meanwhile: failed attempts are repeated, and reported by the "error" event.
    client.connect().catch(() => {});
  }

  function giveUp(): Error {
    // Connected and silent: whatever waits on this connection would wait for good.
    if (client.isReady && !closed) {
      reportOutage("it does not answer");
      client.destroy();
      connect();
    }
    return new Error(
      `Redis at ${where} did not answer within ${OPERATION_TIMEOUT_MS / 1_000} s${describeOutage()}. Check that it runs there and that REDIS_URL is right.`,
    );
  }

  connect();
  return {
    client,
    async run(operation) {
      if (closed) throw new Error(`The connection to Redis at ${where} is closed.`);
      return withDeadline(whenReady, operation, giveUp);
    },
    async close() {
      if (closed) return;
      closed = true;
      await Promise.race([client.close().catch(() => {}), wait(CLOSE_TIMEOUT_MS)]);
      if (client.isOpen) client.destroy();
    },
  };
}

async function withDeadline<T>(
  whenReady: () => Promise<void>,
  operation: () => Promise<T>,
  giveUp: () => Error,
): Promise<T> {
  const deadline = Promise.withResolvers<never>();
  const state = { isSettled: false, isLate: false };
  const timer = setTimeout(() => {
    // An answer that has arrived is read first: it may be this process that was slow.
    setImmediate(() => {
      if (state.isSettled) return;
      state.isLate = true;
      deadline.reject(giveUp());
    });
  }, OPERATION_TIMEOUT_MS);
  const result = (async () => {
    try {
      await whenReady();
      // Its caller was told that nothing was done, so nothing may be done.
      return await (state.isLate ? deadline.promise : operation());
    } finally {
      state.isSettled = true;
      clearTimeout(timer);
    }
  })();
  return Promise.race([result, deadline.promise]);
}

interface Watch {
  /** Resolves when the connection can be used. */
  whenReady: () => Promise<void>;
  reportOutage: (reason: string) => void;
  /** The reason in brackets; empty while there is none. */
  describeOutage: () => string;
}

/** Logs an outage once, and its end once. */
function watchConnection(client: RedisClient, where: string, log: Logger): Watch {
  let ready = Promise.withResolvers<void>();
  let reported: string | undefined;
  client.on("ready", () => {
    ready.resolve();
    ready = Promise.withResolvers();
    if (reported !== undefined) log.info({ redis: where }, "Redis is reachable again");
    reported = undefined;
  });
  function reportOutage(reason: string): void {
    if (reported !== undefined) return;
    reported = reason;
    log.error({ redis: where, reason }, "Redis is not reachable: trying again until it is");
  }
  client.on("error", (error: Error) => reportOutage(error.message));
  return {
    whenReady: () => (client.isReady ? Promise.resolve() : ready.promise),
    reportOutage,
    describeOutage: () => (reported === undefined ? "" : ` (${reported})`),
  };
}

function createRedisClient(url: string) {
  return createClient({
    url,
    // A queue would send what its caller gave up long ago; `run` waits for the connection instead.
    disableOfflineQueue: true,
    commandOptions: { timeout: OPERATION_TIMEOUT_MS },
    pingInterval: PING_INTERVAL_MS,
    socket: {
      connectTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: SOCKET_TIMEOUT_MS,
      reconnectStrategy: (retries: number) =>
        RECONNECT_MIN_MS + Math.random() * Math.min(RECONNECT_MIN_MS * 2 ** retries, RECONNECT_MAX_MS),
    },
  });
}

/** Host and port only: the address may carry a password. */
function describeAddress(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^rediss?:$/.test(parsed.protocol)) {
    throw new Error("REDIS_URL is not the address of a Redis server. It looks like redis://host:6379 or rediss://….");
  }
  return `${parsed.hostname}:${parsed.port === "" ? "6379" : parsed.port}`;
}

function wait(durationMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, durationMs).unref();
  });
}
