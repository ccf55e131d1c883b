import { setTimeout as sleep } from "node:timers/promises";
import { type App, type Logger as BoltLogger, type Receiver, SocketModeReceiver, webApi } from "@slack/bolt";
import type { Logger } from "pino";
import { waitAtMost } from "../../../src/concurrency/deadlines.ts";
import { LoggableError } from "../../../src/port/errors.ts";
import { describeAuthError, isHopeless } from "../api/error.ts";
import { readText, toBody } from "../api/wire.ts";

/** Until then a start that cannot reach Slack goes on trying. */
const START_MS = 90_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** A socket that ends sooner than this counts as a failure, at most as this many in a row. */
const SHORT_MS = 5_000;
const MAX_SHORT = 2;
/** Longest from asking for a socket to its greeting. */
const CONNECT_MS = 20_000;
const CALL_MS = 10_000;
/** A socket that was asked to go stays this long for its acknowledgements, and while another takes its place. */
const LEAVE_MS = 4_000;
const CLOSE_MS = 2_000;
/** The reason for which another socket would only be in the way. */
const TOO_MANY = "too_many_websockets";

export interface SocketsOptions {
  appToken: string;
  apiUrl?: string | undefined;
  /** Sockets held at the same time. */
  count: number;
  boltLog: BoltLogger;
  log: Logger;
  /** No socket will ever open again, with the reason in plain words. */
  onFatal(reason: string): void;
}

/** Bolt's receiver over several sockets. Each event comes over one of them. */
export interface Sockets extends Receiver {
  /** Resolves when the first socket stands. Rejects in plain words when that is hopeless, or takes too long. */
  start(): Promise<void>;
  stop(): Promise<void>;
  isConnected(): boolean;
}

export function createSockets(options: SocketsOptions): Sockets {
  const { count, log, onFatal } = options;
  /** `live` holds the sockets that deliver, `open` also those that are not gone yet. */
  const [live, open] = [new Set<SlackSocket>(), new Set<SlackSocket>()];
  const closing = new AbortController();
  const opened = Promise.withResolvers<void>();
  let app: App | undefined;
  let isOpen = false;
  /** One limit for all sockets: Slack counts every opening. */
  let refusedUntil = 0;
  let keeping: Promise<void>[] = [];

  /** Resolves to the number of failures in a row when the socket has ended. */
  async function holdOne(bolt: App, failures: number): Promise<number> {
    const socket = await openSocket({ ...options, app: bolt }, closing.signal);
    if (closing.signal.aborted) await socket.close();
    const startedAt = performance.now();
    open.add(socket);
    void socket.gone.then(() => open.delete(socket));
    live.add(socket);
    isOpen = true;
    opened.resolve();
    const reason = await socket.ended;
    live.delete(socket);
    if (!closing.signal.aborted) log.debug({ reason }, "A socket to Slack ended; another takes its place.");
    if (performance.now() - startedAt > SHORT_MS) return 0;
    return reason === TOO_MANY ? failures + 1 : Math.min(failures + 1, MAX_SHORT);
  }

  /** Holds one socket after another. */
  async function keep(bolt: App): Promise<void> {
    for (let failures = 0; !closing.signal.aborted; ) {
      const waitMs = refusedUntil - performance.now();
      if (waitMs > 0) await sleep(waitMs, undefined, { signal: closing.signal }).catch(() => {});
      try {
        failures = await holdOne(bolt, failures);
      } catch (error) {
        if (closing.signal.aborted) return;
        if (isHopeless(error)) return fail(error);
        if (error instanceof webApi.WebAPIRateLimitedError) refusedUntil = performance.now() + error.retryAfter * 1_000;
        failures += 1;
        log.warn({ err: error }, "A socket to Slack could not be opened; trying again.");
      }
      // A refresh is no failure: the first try comes at once.
      if (failures > 1) await pause(failures - 1, closing.signal);
    }
  }

  function fail(error: unknown): void {
    const reason = describeAuthError(error, "app");
    if (isOpen) onFatal(reason);
    else opened.reject(new Error(reason, { cause: error }));
  }

  return {
    init(bolt) {
      app = bolt;
    },
    async start() {
      const bolt = app;
      if (bolt === undefined) throw new Error("The receiver was started before it had an app.");
      keeping = Array.from({ length: count }, () => keep(bolt));
      const late = sleep(START_MS, undefined, { signal: closing.signal, ref: false }).then(() => {
        throw new Error(
          "Slack cannot be reached: no socket could be opened. Check the network, and see the log for why.",
        );
      });
      await Promise.race([opened.promise, late]);
    },
    async stop() {
      closing.abort(new Error("The connection to Slack was closed."));
      await Promise.all([...open].map((socket) => socket.close()));
      await Promise.all(keeping);
    },
    isConnected: () => live.size > 0,
  };
}

async function pause(failures: number, signal: AbortSignal): Promise<void> {
  const longestMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 10));
  // Sockets that fell together do not all come back in the same moment.
  await sleep(longestMs * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => {});
}

export interface SocketOptions extends Omit<SocketsOptions, "count" | "onFatal"> {
  app: App;
}

/** One socket, from its greeting to its end. */
export interface SlackSocket {
  /** Resolves when nothing more will be delivered here, with Slack's reason where it gave one. */
  ended: Promise<string | undefined>;
  /** Resolves when the socket is gone, which may be a while after it ended. */
  gone: Promise<void>;
  /** Resolves when it is gone, or after a short while. */
  close(): Promise<void>;
}

/** Opens a socket. Rejects with what Bolt says, or when Slack does not greet in time. It never connects again by itself. */
export async function openSocket(options: SocketOptions, signal: AbortSignal): Promise<SlackSocket> {
  const { app, appToken, apiUrl, boltLog, log } = options;
  const ended = Promise.withResolvers<string | undefined>();
  const gone = Promise.withResolvers<void>();
  // Options of its own: the client writes into them.
  const clientOptions = { retryConfig: { retries: 0 }, timeout: CALL_MS, rejectRateLimitedCalls: true };
  const receiver = new SocketModeReceiver({
    appToken,
    logger: boltLog,
    autoReconnectEnabled: false,
    installerOptions: { clientOptions: { ...clientOptions, ...(apiUrl !== undefined && { slackApiUrl: apiUrl }) } },
    // An event that could not be accepted is not acknowledged, so that Slack delivers it again.
    processEventErrorHandler: async () => false,
  });
  receiver.init(app);
  const { client } = receiver;
  client.on("disconnected", () => {
    ended.resolve(undefined);
    gone.resolve();
  });
  guardMessages(receiver, ended.resolve, log);
  await greeted(receiver, signal);

  return {
    ended: ended.promise,
    gone: gone.promise,
    async close() {
      await waitAtMost(client.disconnect(), CLOSE_MS);
      ended.resolve(undefined);
      gone.resolve();
    },
  };
}

async function greeted({ client }: SocketModeReceiver, signal: AbortSignal): Promise<void> {
  const stopped = Promise.withResolvers<never>();
  const stop = () => stopped.reject(signal.reason);
  const late = setTimeout(
    () => stopped.reject(new LoggableError("Slack did not greet the socket in time.")),
    CONNECT_MS,
  );
  signal.addEventListener("abort", stop);
  const starting = client.start();
  try {
    await Promise.race([starting, stopped.promise]);
  } catch (error) {
    // It may still connect, and would then receive events that nobody handles.
    const discard = () => void client.disconnect().catch(() => {});
    starting.then(discard, discard);
    discard();
    throw error ?? new LoggableError("Slack closed the socket before greeting it.");
  } finally {
    clearTimeout(late);
    signal.removeEventListener("abort", stop);
  }
}

/**
 * Stands between the socket and Bolt's client, because that throws an uncaught error at an envelope without an event,
 * and hangs up in the middle of its work when Slack asks it to go.
 */
function guardMessages({ client }: SocketModeReceiver, leave: (reason: string) => void, log: Logger): void {
  const handlers = client.listeners("ws_message") as Array<(data: unknown, isBinary: boolean) => Promise<void>>;
  client.removeAllListeners("ws_message");

  async function pass(data: unknown, isBinary: boolean): Promise<void> {
    for (const handle of handlers) await handle(data, isBinary);
  }

  async function receive(data: unknown, isBinary: boolean): Promise<void> {
    const envelope = readEnvelope(data);
    if (envelope.type === "disconnect") {
      leave(envelope.reason ?? "");
      if (envelope.reason !== TOO_MANY) await sleep(LEAVE_MS, undefined, { ref: false });
      return pass(data, isBinary);
    }
    if (!envelope.isEmptyEvent) return pass(data, isBinary);
    log.warn({ envelope: envelope.payloadType }, "Slack says that it left out events, because there were too many.");
    client.websocket?.send(JSON.stringify({ envelope_id: envelope.id, payload: {} }), () => {});
  }

  client.on("ws_message", (data: unknown, isBinary: boolean) => {
    receive(data, isBinary).catch((error: unknown) =>
      log.warn({ err: error }, "A message of a socket was not understood."),
    );
  });
}

/** The parts of a message on a socket that are read before Bolt reads it. */
export interface Envelope {
  id: string | undefined;
  type: string | undefined;
  /** Why a socket shall go. */
  reason: string | undefined;
  /** It should hold an event and does not. */
  isEmptyEvent: boolean;
  payloadType: string | undefined;
}

/** Never throws: anything but an envelope reads as an empty one. */
export function readEnvelope(data: unknown): Envelope {
  const body = parse(data);
  const payload = toBody(body["payload"]);
  const event = payload["event"];
  return {
    id: readText(body["envelope_id"]),
    type: readText(body["type"]),
    reason: readText(body["reason"]),
    isEmptyEvent: body["type"] === "events_api" && readText(toBody(event)["type"]) === undefined,
    payloadType: readText(payload["type"]),
  };
}

function parse(data: unknown) {
  if (typeof data !== "string") return {};
  try {
    return toBody(JSON.parse(data));
  } catch {
    return {};
  }
}
