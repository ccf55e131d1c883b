import { createRequire } from "node:module";
import type { Logger } from "pino";
import { FencedError } from "../concurrency/fence.ts";
import { StoreError } from "./outage.ts";

/** Longest an operation waits for its answer. */
const OPERATION_TIMEOUT_MS = 2_000;
/** Longest it waits before that for a connection that was lost, counted from the loss: a short one is waited out. */
const LOSS_WAIT_MS = 2_000;
/** Longest wait once the loss has lasted longer: nobody who asks for an answer waits for a store that is away. */
const OUTAGE_WAIT_MS = 50;
const CONNECT_TIMEOUT_MS = 2_000;
/** A connection on which nothing moves for this long is dead; pings keep a living one moving. */
const SOCKET_TIMEOUT_MS = 10_000;
const PING_INTERVAL_MS = 3_000;
const CLOSE_TIMEOUT_MS = 500;
const RECONNECT_MIN_MS = 20;
const RECONNECT_MAX_MS = 1_000;
/** Pause before the next look for a primary at the address. */
const REPLICA_LOOK_MS = 500;
/** Written to see whether the server takes writes. */
const PROBE_KEY = "palaver:probe";
const PROBE_TTL_MS = 10_000;
/** Error codes of a server that is there and does nothing, or stores nothing, at the moment. */
const REFUSALS = new Set(
  "OOM READONLY MISCONF NOREPLICAS LOADING MASTERDOWN CLUSTERDOWN BUSY TRYAGAIN EXECABORT NOAUTH NOPERM".split(" "),
);

/** Redis packages make up a third of what a process loads: loaded at once, and only when needed. */
export const loadRedis = () => createRequire(import.meta.url)("@keyv/redis") as typeof import("@keyv/redis");

export type RedisClient = ReturnType<typeof createRedisClient>;

export interface RedisConnection {
  client: RedisClient;
  /**
   * Runs an operation on the client as soon as it is connected. Rejects with a `StoreError` where Redis is away or does
   * not take it: after two seconds without an answer, after two without a connection, and at once while it is known to
   * be away. An operation that was not begun by then never begins. One that a read-only replica refuses is made once more
   * when the primary is found. `on` is the client that it is made on, where that is another one: whichever is silent is
   * connected anew.
   */
  run: <T>(operation: () => Promise<T>, on?: RedisClient) => Promise<T>;
  /** Further clients of the same server. When the address leads to another server, they reconnect as well. */
  further: Set<RedisClient>;
  /** Milliseconds since it came back after it had been lost or silent, or away at the start; infinite where it never was. */
  backForMs: () => number;
  close: () => Promise<void>;
}

/** A connection that is kept for good: it is made in the background, and again whenever it is lost. */
export function connectToRedis(url: string, log: Logger): RedisConnection {
  const where = describeAddress(url);
  const client = createRedisClient(url);
  const further = new Set<RedisClient>();
  const watch = watchConnection(client, where, log);
  /** Other clients that were connected anew, and when. */
  const remadeAt = new WeakMap<RedisClient, number>();
  let closed = false;
  /** The server is a replica, and its address does not lead to the new primary yet. */
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
      // One that is just connecting may have reached the replica. In its own event it cannot be ended yet.
      if (other.isReady) reconnectReady(other);
      else other.once("ready", () => setImmediate(reconnectReady, other));
    }
  }

  function leaveReplica(): void {
    if (isReplica || closed) return;
    isReplica = true;
    watch.reportOutage("it is a replica, which takes no writes", 0);
    reconnectReady(client);
  }

  function describeSilence(): StoreError {
    return new StoreError(
      `Redis at ${where} did not answer within ${OPERATION_TIMEOUT_MS / 1_000} s${watch.describeOutage()}. Check that it runs there and that REDIS_URL is right.`,
    );
  }

  function giveUp(on: RedisClient): StoreError {
    // Connected and silent: everything that waits on this connection would wait for good.
    if (on !== client) renew(on);
    else if (client.isReady && !closed) {
      watch.reportOutage("it does not answer", OPERATION_TIMEOUT_MS);
      reconnectReady(client);
    }
    return describeSilence();
  }

  /** A client that keeps what is asked while it is not connected may never come to be: nothing bounds its greeting. */
  function renew(other: RedisClient): void {
    const isNew = performance.now() < (remadeAt.get(other) ?? Number.NEGATIVE_INFINITY) + OPERATION_TIMEOUT_MS;
    if (closed || isNew || !other.isOpen) return;
    remadeAt.set(other, performance.now());
    log.warn({ redis: where }, "a further connection to Redis is silent and is made anew");
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
          // A replica refuses before it changes anything, so nothing is done twice.
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
  // Rejects only when it is closed meanwhile: failed attempts are repeated, and reported by the "error" event.
  client.connect().catch(() => {});
}

/** A client that is still connecting goes on with that: ended in the middle, it would open two connections. */
function reconnectReady(client: RedisClient): void {
  if (!client.isReady) return;
  client.destroy();
  connect(client);
}

/** Rejects if the server refuses a write. A read-only server, or one without memory, still answers a ping. */
export async function probe(client: RedisClient): Promise<void> {
  await client.set(PROBE_KEY, "1", { expiration: { type: "PX", value: PROBE_TTL_MS } });
}

/** True if a replica refused a write, alone or inside a script. */
function isReadOnly(error: unknown): boolean {
  return error instanceof Error && /\bREADONLY\b/.test(error.message);
}

async function withDeadline<T>(operation: () => Promise<T>, giveUp: () => Error): Promise<T> {
  const deadline = Promise.withResolvers<never>();
  let isSettled = false;
  const timer = setTimeout(() => {
    // An answer that has arrived is read first: it may be this process that was slow.
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

/** Says of what the client threw, or the server refused, that it is an outage, where it is one. */
function toStoreError(error: unknown, where: string): unknown {
  if (!(error instanceof Error) || error instanceof TypeError) return error;
  if (error instanceof StoreError || error instanceof FencedError) return error;
  const [, code] = /^([A-Z]{3,}) /.exec(error.message) ?? [];
  if (code !== undefined && !REFUSALS.has(code)) return error;
  const reason = error.message.replace(/\.$/, "");
  return new StoreError(`Redis at ${where} did not carry this out (${reason}). ${toRemedy(code)}`, { cause: error });
}

function toRemedy(code: string | undefined): string {
  if (code === undefined) return "Check that it runs there.";
  if (code === "NOAUTH" || code === "NOPERM") return "Check the user and the password in REDIS_URL.";
  return "Its operator has to set that right.";
}

interface Watch {
  /** Resolves to true when the connection can be used, and to false when that takes too long. */
  whenReady: () => Promise<boolean>;
  /** `sinceMs`: for how long that has been so. */
  reportOutage: (reason: string, sinceMs: number) => void;
  /** The connection can be used again, or for the first time. */
  reportReturn: () => void;
  /** The reason in brackets; empty while there is none. */
  describeOutage: () => string;
  backForMs: () => number;
}

/** Logs an outage once, and its end once. */
function watchConnection(client: RedisClient, where: string, log: Logger): Watch {
  const waiting = new Set<() => void>();
  let reported: { reason: string; atMs: number } | undefined;
  let wasReady = false;
  let backAtMs = Number.NEGATIVE_INFINITY;
  function reportReturn(): void {
    // The first time is a return only where it had to be waited for.
    if (wasReady || reported !== undefined) backAtMs = performance.now();
    wasReady = true;
    for (const wake of waiting) wake();
    if (reported !== undefined) log.info({ redis: where }, "Redis is reachable again");
    reported = undefined;
  }
  function reportOutage(reason: string, sinceMs: number): void {
    if (reported !== undefined) return;
    reported = { reason, atMs: performance.now() - sinceMs };
    log.error({ redis: where, reason }, "Redis is not reachable: trying again until it is");
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
      // Nothing of an operation that was given up stays here until the end of a long outage.
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

/** A further connection that waits for messages: never given up for silence. The first one reports problems. */
export function createListeningClient({ client, further }: Pick<RedisConnection, "client" | "further">): RedisClient {
  const { socketTimeout: _, ...socket } = client.options.socket ?? {};
  const listening = client.duplicate({ disableOfflineQueue: false, commandOptions: {}, pingInterval: 0, socket });
  // After an error on an open connection a client has lost its place in the stream, and drops all messages.
  listening.on("error", () => reconnectReady(listening));
  further.add(listening);
  return listening;
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
