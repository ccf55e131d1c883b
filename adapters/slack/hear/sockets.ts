import { setTimeout as sleep } from "node:timers/promises";
import { type Logger as BoltLogger, type ReceiverEvent, webApi } from "@slack/bolt";
import { SocketModeClient } from "@slack/socket-mode";
import type { Logger } from "pino";
import { waitAtMost } from "../../../src/concurrency/deadlines.ts";
import { LoggableError } from "../../../src/port/errors.ts";
import { describeAuthError, isHopeless } from "../api/error.ts";
import { readText, toBody } from "../api/wire.ts";

const START_MS = 90_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** A socket that ends sooner counts as a failure. The backoff counts at most `MAX_SHORT` failures in a row. */
const SHORT_MS = 5_000;
const MAX_SHORT = 2;
/** Longest time from requesting a socket to Slack's `hello`. */
const CONNECT_MS = 20_000;
const CALL_MS = 10_000;
/** A socket that Slack asks to close stays open this long: for acknowledgements, and until its replacement is open. */
const LEAVE_MS = 4_000;
const CLOSE_MS = 2_000;
/** Slack's reason for closing a socket if the app has too many. */
const TOO_MANY = "too_many_websockets";

export interface SocketsOptions {
  appToken: string;
  apiUrl?: string | undefined;
  count: number;
  boltLog: BoltLogger;
  log: Logger;
  /** Called when no socket can ever open again. `reason` is in plain words. */
  onFatal(reason: string): void;
  /** Handles and acknowledges one delivery. If it rejects, Slack delivers the event again. */
  take(received: ReceiverEvent): Promise<void>;
}

export interface Sockets {
  /** Resolves when the first socket is open. Rejects with a plain sentence if that is hopeless or takes too long. */
  start(): Promise<void>;
  stop(): Promise<void>;
  isConnected(): boolean;
}

export function createSockets(options: SocketsOptions): Sockets {
  const { count, log, onFatal } = options;
  /** `live` contains the sockets that deliver events. `open` also contains those that are closing. */
  const [live, open] = [new Set<SlackSocket>(), new Set<SlackSocket>()];
  const closing = new AbortController();
  const opened = Promise.withResolvers<void>();
  let isOpen = false;
  /** One limit for all sockets together, because Slack counts every request for a socket. */
  let refusedUntil = 0;
  let keeping: Promise<void>[] = [];

  /** Waits for the end of a socket. Resolves to the number of failures in a row. */
  async function holdOne(failures: number): Promise<number> {
    const socket = await openSocket(options, closing.signal);
    if (closing.signal.aborted) await socket.close();
    const startedAt = performance.now();
    open.add(socket);
    void socket.gone.then(() => open.delete(socket));
    live.add(socket);
    isOpen = true;
    opened.resolve();
    const reason = await socket.ended;
    live.delete(socket);
    if (!closing.signal.aborted) log.debug({ reason }, "A socket to Slack closed; opening another one.");
    if (performance.now() - startedAt > SHORT_MS) return 0;
    return reason === TOO_MANY ? failures + 1 : Math.min(failures + 1, MAX_SHORT);
  }

  async function keep(): Promise<void> {
    for (let failures = 0; !closing.signal.aborted; ) {
      const waitMs = refusedUntil - performance.now();
      if (waitMs > 0) await sleep(waitMs, undefined, { signal: closing.signal }).catch(() => {});
      try {
        failures = await holdOne(failures);
      } catch (error) {
        if (closing.signal.aborted) return;
        if (isHopeless(error)) return fail(error);
        if (error instanceof webApi.WebAPIRateLimitedError) refusedUntil = performance.now() + error.retryAfter * 1_000;
        failures += 1;
        log.warn({ err: error }, "Could not open a socket to Slack; retrying.");
      }
      // Starts the first attempt without a delay, because a refresh is not a failure.
      if (failures > 1) await pause(failures - 1, closing.signal);
    }
  }

  function fail(error: unknown): void {
    const reason = describeAuthError(error, "app");
    if (isOpen) onFatal(reason);
    else opened.reject(new Error(reason, { cause: error }));
  }

  return {
    async start() {
      keeping = Array.from({ length: count }, () => keep());
      const late = sleep(START_MS, undefined, { signal: closing.signal, ref: false }).then(() => {
        throw new Error(
          "Slack cannot be reached: no socket could be opened. Check the network; the log shows the reasons.",
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
  // Sockets that dropped together must not all reconnect at the same moment.
  await sleep(longestMs * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => {});
}

export interface SlackSocket {
  /** Resolves when the socket delivers nothing more, to Slack's reason or undefined. */
  ended: Promise<string | undefined>;
  /** Resolves when the socket is closed, which can be some time after `ended`. */
  gone: Promise<void>;
  /** Resolves when the socket is closed, or after a short timeout. */
  close(): Promise<void>;
}

export type SocketOptions = Pick<SocketsOptions, "appToken" | "apiUrl" | "boltLog" | "log" | "take">;

/** Opens a socket, which never reconnects. Rejects with Slack's error, or if Slack sends no `hello` in time. */
export async function openSocket(options: SocketOptions, signal: AbortSignal): Promise<SlackSocket> {
  const { take } = options;
  const client = new Client(options);
  const gone = Promise.withResolvers<void>();
  client.on("disconnected", () => {
    client.ended.resolve(undefined);
    gone.resolve();
  });
  client.on("slack_event", ({ body, ack }: ReceiverEvent) => void take({ body, ack }).catch(() => {}));
  await greeted(client, signal);

  return {
    ended: client.ended.promise,
    gone: gone.promise,
    async close() {
      await waitAtMost(client.disconnect(), CLOSE_MS);
      client.ended.resolve(undefined);
      gone.resolve();
    },
  };
}

async function greeted(client: SocketModeClient, signal: AbortSignal): Promise<void> {
  const stopped = Promise.withResolvers<never>();
  const stop = () => stopped.reject(signal.reason);
  const late = setTimeout(
    () => stopped.reject(new LoggableError("Slack did not send hello on the socket in time.")),
    CONNECT_MS,
  );
  signal.addEventListener("abort", stop);
  const starting = client.start();
  try {
    await Promise.race([starting, stopped.promise]);
  } catch (error) {
    // Disconnects the client, because it may still connect and then receive events that no code handles.
    const discard = () => void client.disconnect().catch(() => {});
    starting.then(discard, discard);
    discard();
    throw error ?? new LoggableError("Slack closed the socket before sending hello.");
  } finally {
    clearTimeout(late);
    signal.removeEventListener("abort", stop);
  }
}

/**
 * Works around two bugs in Slack's client, present in 3.1.0, the newest version. When Slack asks to close a socket, the
 * client closes it while it is still working. For an envelope without an event, the client throws an uncaught error.
 */
class Client extends SocketModeClient {
  readonly ended = Promise.withResolvers<string | undefined>();
  readonly #log: Logger;

  constructor({ appToken, apiUrl, boltLog, log }: SocketOptions) {
    super({
      appToken,
      logger: boltLog,
      autoReconnectEnabled: false,
      clientOptions: {
        retryConfig: { retries: 0 },
        timeout: CALL_MS,
        rejectRateLimitedCalls: true,
        ...(apiUrl !== undefined && { slackApiUrl: apiUrl }),
      },
    });
    this.#log = log;
  }

  protected override async onWebSocketMessage(data: string | ArrayBuffer, isBinary: boolean): Promise<void> {
    const envelope = readEnvelope(data);
    if (envelope.type === "disconnect") {
      this.ended.resolve(envelope.reason ?? "");
      if (envelope.reason !== TOO_MANY) await sleep(LEAVE_MS, undefined, { ref: false });
    }
    if (envelope.isEmptyEvent) {
      this.#log.warn({ envelope: envelope.payloadType }, "Slack dropped events because there were too many.");
      this.websocket?.send(JSON.stringify({ envelope_id: envelope.id, payload: {} }), () => {});
      return;
    }
    try {
      await super.onWebSocketMessage(data, isBinary);
    } catch (error) {
      this.#log.warn({ err: error }, "Could not read a message from a Slack socket.");
    }
  }
}

/** The parts of a socket message that are read before Bolt reads the message. */
interface Envelope {
  id: string | undefined;
  type: string | undefined;
  reason: string | undefined;
  /** The envelope should contain an event but does not. */
  isEmptyEvent: boolean;
  payloadType: string | undefined;
}

/** Never throws. Anything that is not an envelope becomes an empty one. */
function readEnvelope(data: unknown): Envelope {
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
