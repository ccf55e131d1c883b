import { setTimeout as sleep } from "node:timers/promises";
import { type App, type Logger as BoltLogger, SocketModeReceiver } from "@slack/bolt";
import type { Logger } from "pino";
import { LoggableError } from "../../../src/port/errors.ts";
import { type Envelope, readEnvelope } from "./envelope.ts";

/** Longest from asking for a socket to its greeting. */
const CONNECT_MS = 20_000;
const CALL_MS = 10_000;
/** A socket that was asked to go stays for what it still has to acknowledge, and while another takes its place. */
const LEAVE_MS = 4_000;
const CLOSE_MS = 2_000;
/** The reason for which another socket would only be in the way. */
export const TOO_MANY = "too_many_websockets";

export interface LineOptions {
  app: App;
  appToken: string;
  apiUrl?: string | undefined;
  boltLog: BoltLogger;
  log: Logger;
}

/** One socket, from its greeting to its end. */
export interface Line {
  /** Resolves when nothing more will be delivered here, with Slack's reason where it gave one. */
  ended: Promise<string | undefined>;
  /** Resolves when the socket is gone, which may be a while after it ended. */
  gone: Promise<void>;
  /** Resolves when it is gone, or after a short while. */
  close(): Promise<void>;
}

/** Opens a socket. Rejects with what Bolt says, or when Slack does not greet in time. It never connects again by itself. */
export async function openLine(options: LineOptions, signal: AbortSignal): Promise<Line> {
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
    // What could not be taken over is not acknowledged, so that Slack delivers it again.
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
      await Promise.race([client.disconnect(), sleep(CLOSE_MS, undefined, { ref: false })]);
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
    // It may still connect, and would then take events that nobody hears.
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
 * Puts itself between the socket and Bolt's client, which fails without anybody catching it on an envelope that has
 * no event inside, and which hangs up in the middle of its work when it is asked to go.
 */
function guardMessages({ client }: SocketModeReceiver, leave: (reason: string) => void, log: Logger): void {
  const handlers = client.listeners("ws_message") as Array<(data: unknown, isBinary: boolean) => Promise<void>>;
  client.removeAllListeners("ws_message");

  async function pass(data: unknown, isBinary: boolean): Promise<void> {
    for (const handle of handlers) await handle(data, isBinary);
  }

  async function receive(data: unknown, isBinary: boolean): Promise<void> {
    const envelope: Envelope = readEnvelope(data);
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
