import { createRequire } from "node:module";
import type { Logger } from "pino";
import { FencedError } from "../port/right.ts";
import { StoreError } from "./outage.ts";

/** The longest wait for the response to an operation. */
const OPERATION_TIMEOUT_MS = 2_000;
/** Until this long after the loss of a connection, operations wait for a new connection. */
const LOSS_WAIT_MS = 2_000;
/** In a longer outage, each operation waits this long for a connection. */
const OUTAGE_WAIT_MS = 50;
const CONNECT_TIMEOUT_MS = 2_000;
/** A connection without traffic for this long counts as dead. Pings cause traffic on a working connection. */
const SOCKET_TIMEOUT_MS = 10_000;
const PING_INTERVAL_MS = 3_000;
const CLOSE_TIMEOUT_MS = 500;
const RECONNECT_MIN_MS = 20;
const RECONNECT_MAX_MS = 1_000;
/** How long to wait between two checks whether the address leads to a primary. */
const REPLICA_LOOK_MS = 500;
const PROBE_KEY = "palaver:probe";
const PROBE_TTL_MS = 10_000;
/** The error codes of a server that is reachable but cannot work or store at the moment. */
const REFUSALS = new Set(
  "OOM READONLY MISCONF NOREPLICAS LOADING MASTERDOWN CLUSTERDOWN BUSY TRYAGAIN EXECABORT NOAUTH NOPERM".split(" "),
);

/** Redis packages are a third of the code that a process loads, so only a process that needs Redis loads them. */
export const loadRedis = () => createRequire(import.meta.url)("@keyv/redis") as typeof import("@keyv/redis");

export type RedisClient = ReturnType<typeof createRedisClient>;

export interface RedisConnection {
  client: RedisClient;
  /**
   * Runs an operation as soon as the client is connected. Rejects with a `StoreError` if Redis is unavailable or
   * refuses: after two seconds without a response or a connection, or at once during a known outage. An operation that
   * has not started by then never starts. If a read-only replica refuses the operation, runs it again once the primary
   * is found. `on` is another client to use. Reconnects a client that does not respond.
   */
  run: <T>(operation: () => Promise<T>, on?: RedisClient) => Promise<T>;
  /** Other clients of the same server. They reconnect if the address leads to another server. */
  further: Set<RedisClient>;
  /** Milliseconds since the last outage ended. Infinity if there was no outage. */
  backForMs: () => number;
  close: () => Promise<void>;
}

/** Connects in the background, and reconnects whenever the connection is lost. */
export function connectToRedis(url: string, log: Logger): RedisConnection {
  const where = describeAddress(url);
  const client = createRedisClient(url);
  const further = new Set<RedisClient>();
  const watch = watchConnection(client, where, log);
  const remadeAt = new WeakMap<RedisClient, number>();
  let closed = false;
  /** True if the server is a replica, until the address leads to the new primary. */
  let isReplica = false;

  client.on("error", () => {
    if (!closed) reconnectReady(client);
  });
  client.on("ready", () => void onReady());

  async function onReady(): Promise<void> {
    if (!isReplica) return watch.reportReturn();
    const trial = withDeadline(
      () => probe(client),
      () => describeSilence(),
    );
    const isStillReplica = await trial.then(() => false, isReadOnly);
    if (closed || !client.isReady) return;
    if (isStillReplica) return void setTimeout(reconnectReady, REPLICA_LOOK_MS, client).unref();
    isReplica = false;
    watch.reportReturn();
    for (const other of further) {
      // A client that is connecting may also have reached the replica. It cannot be closed during its own event.
      if (other.isReady) reconnectReady(other);
      else other.once("ready", () => setImmediate(reconnectReady, other));
    }
  }

  function leaveReplica(): void {
    if (isReplica || closed) return;
    isReplica = true;
    watch.reportOutage("it is a replica, which accepts no writes", 0);
    reconnectReady(client);
  }

  function describeSilence(): StoreError {
    return new StoreError(
      `Redis at ${where} did not answer within ${OPERATION_TIMEOUT_MS / 1_000} s${watch.describeOutage()}. Check that it runs there and that REDIS_URL is right.`,
    );
  }

  function giveUp(on: RedisClient): StoreError {
    // The connection is open but silent, so all operations on it would wait forever.
    if (on !== client) renew(on);
    else if (client.isReady && !closed) {
      watch.reportOutage("it does not answer", OPERATION_TIMEOUT_MS);
      reconnectReady(client);
    }
    return describeSilence();
  }

  /** An offline queue would let a client hang forever during the handshake, which has no timeout. */
  function renew(other: RedisClient): void {
    const isNew = performance.now() < (remadeAt.get(other) ?? Number.NEGATIVE_INFINITY) + OPERATION_TIMEOUT_MS;
    if (closed || isNew || !other.isOpen) return;
    remadeAt.set(other, performance.now());
    log.warn({ redis: where }, "another connection to Redis does not respond; reconnecting");
    other.destroy();
    connect(other);
  }

  async function tryTo<T>(operation: () => Promise<T>, on: RedisClient): Promise<T> {
    if (closed) throw new Error(`The connection to Redis at ${where} is closed.`);
    if (!(await watch.whenReady())) throw describeSilence();
    return withDeadline(operation, () => giveUp(on));
  }

  connect(client);
  return {
    client,
    further,
    async run(operation, on = client) {
      try {
        return await tryTo(operation, on).catch((error: unknown) => {
          if (!isReadOnly(error)) throw error;
          leaveReplica();
          // A replica refuses an operation before it changes anything, so no operation has an effect twice.
          return tryTo(operation, on);
        });
      } catch (error) {
        throw toStoreError(error, where);
      }
    },
    backForMs: watch.backForMs,
    async close() {
      if (closed) return;
      closed = true;
      await Promise.race([client.close().catch(() => {}), wait(CLOSE_TIMEOUT_MS)]);
      if (client.isOpen) client.destroy();
    },
  };
}

function connect(client: RedisClient): void {
  // Rejects only if the client is closed while it connects. The client retries failed attempts by itself and reports
  // them as "error" events.
  client.connect().catch(() => {});
}

/** Reconnects a client, unless it is connecting: closing it then would open two connections. */
function reconnectReady(client: RedisClient): void {
  if (!client.isReady) return;
  client.destroy();
  connect(client);
}

/** Rejects if the server refuses a write. A read-only server, or one without memory, still answers a ping. */
export async function probe(client: RedisClient): Promise<void> {
  await client.set(PROBE_KEY, "1", { expiration: { type: "PX", value: PROBE_TTL_MS } });
}

/** True if a replica refused a write, directly or in a script. */
function isReadOnly(error: unknown): boolean {
  return error instanceof Error && /\bREADONLY\b/.test(error.message);
}

async function withDeadline<T>(operation: () => Promise<T>, giveUp: () => Error): Promise<T> {
  const deadline = Promise.withResolvers<never>();
  let isSettled = false;
  const timer = setTimeout(() => {
    // Give up only after pending responses are read: if only this process was slow, the response has already arrived.
    setImmediate(() => {
      if (!isSettled) deadline.reject(giveUp());
    });
  }, OPERATION_TIMEOUT_MS);
  try {
    return await Promise.race([operation(), deadline.promise]);
  } finally {
    isSettled = true;
    clearTimeout(timer);
  }
}

/** Turns an error that means an outage into a `StoreError`. Returns other errors unchanged. */
function toStoreError(error: unknown, where: string): unknown {
  if (!(error instanceof Error) || error instanceof TypeError) return error;
  if (error instanceof StoreError || error instanceof FencedError) return error;
  const [, code] = /^([A-Z]{3,}) /.exec(error.message) ?? [];
  if (code !== undefined && !REFUSALS.has(code)) return error;
  const reason = error.message.replace(/\.$/, "");
  return new StoreError(`Redis at ${where} rejected this command (${reason}). ${toRemedy(code)}`, { cause: error });
}

function toRemedy(code: string | undefined): string {
  if (code === undefined) return "Check that it runs there.";
  if (code === "NOAUTH" || code === "NOPERM") return "Check the user and the password in REDIS_URL.";
  return "Its operator must fix that.";
}

interface Watch {
  /** Resolves to true once the connection is usable, and to false if that takes too long. */
  whenReady: () => Promise<boolean>;
  reportOutage: (reason: string, sinceMs: number) => void;
  /** Called when the connection becomes usable, for the first time or again. */
  reportReturn: () => void;
  /** Returns the reason of an outage in brackets; "" if the reason is unknown. */
  describeOutage: () => string;
  backForMs: () => number;
}

/** Logs the start and the end of each outage once. */
function watchConnection(client: RedisClient, where: string, log: Logger): Watch {
  const waiting = new Set<() => void>();
  let reported: { reason: string; atMs: number } | undefined;
  let wasReady = false;
  let backAtMs = Number.NEGATIVE_INFINITY;
  function reportReturn(): void {
    // A first connection counts as a return only if an operation had to wait for it.
    if (wasReady || reported !== undefined) backAtMs = performance.now();
    wasReady = true;
    for (const wake of waiting) wake();
    if (reported !== undefined) log.info({ redis: where }, "Redis is reachable again");
    reported = undefined;
  }
  function reportOutage(reason: string, sinceMs: number): void {
    if (reported !== undefined) return;
    reported = { reason, atMs: performance.now() - sinceMs };
    log.error({ redis: where, reason }, "Redis is not reachable; retrying");
  }
  client.on("error", (error: Error) => reportOutage(error.message, 0));

  function toPatienceMs(): number {
    const lostForMs = reported === undefined ? 0 : performance.now() - reported.atMs;
    return Math.max(LOSS_WAIT_MS - lostForMs, OUTAGE_WAIT_MS);
  }
  return {
    whenReady() {
      if (client.isReady && reported === undefined) return Promise.resolve(true);
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const settle = (isReady: boolean) => {
        clearTimeout(timer);
        waiting.delete(wake);
        resolve(isReady);
      };
      // An abandoned operation must leave no listener here during a long outage.
      const wake = () => settle(true);
      const timer = setTimeout(settle, toPatienceMs(), false);
      waiting.add(wake);
      return promise;
    },
    reportOutage,
    reportReturn,
    describeOutage: () => (reported === undefined ? "" : ` (${reported.reason})`),
    backForMs: () => performance.now() - backAtMs,
  };
}

function createRedisClient(url: string) {
  return loadRedis().createClient({
    url,
    // An offline queue would send operations whose callers gave up long ago. Instead, `run` waits for the connection.
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

/** Opens another connection, which can wait for messages as long as necessary. The first one reports problems. */
export function createListeningClient({ client, further }: Pick<RedisConnection, "client" | "further">): RedisClient {
  const { socketTimeout: _, ...socket } = client.options.socket ?? {};
  const listening = client.duplicate({ disableOfflineQueue: false, commandOptions: {}, pingInterval: 0, socket });
  // Reconnect after an error: the client no longer knows its position in the stream and drops all messages.
  listening.on("error", () => reconnectReady(listening));
  further.add(listening);
  return listening;
}

/** Shows only the host and port, because the address can contain a password. */
function describeAddress(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^rediss?:$/.test(parsed.protocol)) {
    throw new Error(
      "REDIS_URL is not the address of a Redis server. It should look like redis://host:6379 or rediss://….",
    );
  }
  return `${parsed.hostname}:${parsed.port === "" ? "6379" : parsed.port}`;
}

function wait(durationMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, durationMs).unref();
  });
}
