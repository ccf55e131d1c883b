import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import type { Core } from "./core.ts";
import type { AttemptResult, Delivery, Retry, Transport } from "./delivery.ts";

/** Time between two ticks. If this process pauses, the pause counts as one tick. */
const TICK_MS = 100;

export type DisconnectReason = "warning" | "refresh_requested" | "link_disabled" | "too_many_websockets";

export interface DisconnectOptions {
  /** If true, Slack asks only the oldest connection to close. */
  isOne?: boolean;
  /** If false, Slack never responds to the app's close frame. */
  completesClose?: boolean;
}

export interface SocketMode extends Transport {
  /** Returns a URL that accepts one connection. */
  newUrl(): string;
  /** Number of open connections that got Slack's `hello`. */
  connections(): number;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Asks the app to close its connections. They get no more deliveries, and Slack closes them after a while. */
  disconnect(reason: DisconnectReason, options?: DisconnectOptions): void;
  /** Drops all connections without a close frame. */
  drop(): void;
  close(): void;
}

interface Pending {
  connection: WebSocket;
  settle(result: AttemptResult): void;
}

/** Slack closes a connection this long after it asked the app to close it. */
const LEAVING_MS = 10_000;

/** Delivers events over the WebSockets that the app opens, in turn. */
export function createSocketMode({ app, changes, limits, newId, origin }: Core): SocketMode {
  const server = new WebSocketServer({ noServer: true });
  const tickets = new Set<string>();
  const ready = new Set<WebSocket>();
  const all = new Set<WebSocket>();
  const pending = new Map<string, Pending>();
  const waiting: Array<() => void> = [];
  let turn = 0;
  const state = { isClosed: false };

  function greet(connection: WebSocket): void {
    all.add(connection);
    const ping = setInterval(() => connection.ping("Ping from applink-simulator"), limits.pingMs);
    connection.on("error", () => {});
    connection.on("close", () => leave(connection, ping));
    if (ready.size >= limits.maxConnections) {
      part(connection, "too_many_websockets");
      return;
    }
    connection.on("message", (data: RawData) => receive(data));
    ready.add(connection);
    say(connection, {
      type: "hello",
      num_connections: ready.size,
      debug_info: { host: "applink-simulator", build_number: 1, approximate_connection_time: 18_060 },
      connection_info: { app_id: app.id },
    });
    for (const wake of waiting.splice(0)) wake();
    changes.changed();
  }

  function leave(connection: WebSocket, ping: NodeJS.Timeout): void {
    clearInterval(ping);
    ready.delete(connection);
    all.delete(connection);
    for (const { connection: carrier, settle } of pending.values()) {
      const detail = "the socket closed before that";
      if (carrier === connection)
        settle({ isAcknowledged: false, reason: "connection_failed", detail, mayRetry: true });
    }
    changes.changed();
  }

  function receive(data: RawData): void {
    const { envelope_id: id = "", payload = {} } = readAcknowledgement(data);
    const response = Object.keys(payload).length === 0 ? undefined : payload;
    pending.get(id)?.settle({ isAcknowledged: true, response, takenMs: 0 });
  }

  function part(connection: WebSocket, reason: DisconnectReason): void {
    ready.delete(connection);
    say(connection, { type: "disconnect", reason, debug_info: { host: "applink-simulator" } });
    setTimeout(() => connection.terminate(), LEAVING_MS).unref();
    changes.changed();
  }

  async function send(delivery: Delivery, retry: Retry | undefined): Promise<AttemptResult> {
    const detail = "no socket was connected";
    // An event waits for the next connection. A button press without a connection fails.
    while (ready.size === 0 && delivery.type === "events_api" && !state.isClosed) {
      await new Promise<void>((resolve) => void waiting.push(resolve));
    }
    const connection = [...ready][turn++ % Math.max(1, ready.size)];
    if (connection === undefined) {
      return { isAcknowledged: false, reason: "no_connection", detail, mayRetry: false };
    }
    const { promise, resolve } = Promise.withResolvers<AttemptResult>();
    const startedMs = performance.now();
    const timer = startTimer(limits.ackMs, () => settle(toTimeout(limits.ackMs)));
    const settle = (result: AttemptResult) => {
      timer.end();
      pending.delete(delivery.id);
      resolve(result.isAcknowledged ? { ...result, takenMs: performance.now() - startedMs } : result);
    };
    pending.set(delivery.id, { connection, settle });
    say(connection, toEnvelope(delivery, retry));
    return promise;
  }

  return {
    send,
    newUrl() {
      const ticket = newId("ticket-");
      tickets.add(ticket);
      return `${origin().replace("http", "ws")}/link/?ticket=${ticket}&app_id=${app.id}`;
    },
    connections: () => ready.size,
    upgrade(request, socket, head) {
      const ticket = new URL(request.url ?? "/", origin()).searchParams.get("ticket") ?? "";
      if (tickets.delete(ticket)) server.handleUpgrade(request, socket, head, greet);
      else socket.end("HTTP/1.1 401 Unauthorized\r\nconnection: close\r\n\r\n");
    },
    disconnect(reason, { isOne = false, completesClose = true } = {}) {
      for (const connection of [...ready].slice(0, isOne ? 1 : undefined)) {
        part(connection, reason);
        // Pause the socket, so that it does not read and answer a close frame.
        if (!completesClose) connection.pause();
      }
    },
    drop() {
      for (const connection of all) connection.terminate();
    },
    close() {
      state.isClosed = true;
      for (const wake of waiting.splice(0)) wake();
      for (const connection of all) connection.terminate();
      server.close();
    },
  };
}

function toEnvelope({ id, type, payload }: Delivery, retry: Retry | undefined): Record<string, unknown> {
  const envelope = { envelope_id: id, type, accepts_response_payload: type !== "events_api", payload };
  if (type !== "events_api") return envelope;
  return { ...envelope, retry_attempt: retry?.num ?? 0, retry_reason: retry?.reason ?? "" };
}

interface Acknowledgement {
  envelope_id?: string;
  payload?: Record<string, unknown>;
}

/** Parses an acknowledgement. Slack ignores invalid data on a socket. */
function readAcknowledgement(data: RawData): Acknowledgement {
  try {
    return JSON.parse(Buffer.isBuffer(data) ? data.toString() : "{}") as Acknowledgement;
  } catch {
    return {};
  }
}

function say(connection: WebSocket, message: unknown): void {
  connection.send(JSON.stringify(message));
}

/**
 * Starts a timer that reads pending data before it fires. It counts only the time in which this process runs, because
 * on a busy machine this process, which often contains the app too, can pause.
 */
function startTimer(ms: number, fire: () => void): { end(): void } {
  let isOver = false;
  let leftMs = ms;
  let timer = setTimeout(tick, Math.min(TICK_MS, leftMs));

  function tick(): void {
    leftMs -= TICK_MS;
    if (leftMs > 0) timer = setTimeout(tick, Math.min(TICK_MS, leftMs));
    else setImmediate(() => isOver || fire());
  }

  return {
    end() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

function toTimeout(ackMs: number): AttemptResult {
  return { isAcknowledged: false, reason: "timeout", detail: `nothing came within ${ackMs} ms`, mayRetry: true };
}
