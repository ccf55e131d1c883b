import type { Hono } from "hono";
import type { SlackAdapterOptions } from "../options.ts";
import { createBolt, type Dispatcher, toBoltLogger } from "./dispatcher.ts";
import { createRequests } from "./requests.ts";
import { createSockets } from "./sockets.ts";

/** One may be refreshed while the other delivers. */
const SOCKETS = 2;

export interface ConnectionOptions extends Pick<SlackAdapterOptions, "transport" | "apiUrl" | "onFatal" | "log"> {
  dispatcher: Dispatcher;
}

/** The connection over which Slack reaches the bot, by Bolt's receivers. */
export interface Connection {
  /** To be served on our HTTP server; undefined with sockets. */
  app: Hono | undefined;
  /** Resolves when Slack can deliver. Rejects in plain words when that is hopeless, or takes too long. */
  open(): Promise<void>;
  isReady(): boolean;
  /** Ends delivery over sockets. Events on their way are not acknowledged, and come again. */
  close(): Promise<void>;
}

export function createConnection(options: ConnectionOptions): Connection {
  return options.transport.mode === "socket"
    ? overSockets(options, options.transport.appToken)
    : overRequests(options, options.transport.signingSecret);
}

function overSockets(options: ConnectionOptions, appToken: string): Connection {
  const { log, apiUrl, onFatal } = options;
  const boltLog = toBoltLogger(log);
  const sockets = createSockets({ appToken, apiUrl, count: SOCKETS, boltLog, log, onFatal });
  const bolt = createBolt({ ...options, receiver: sockets });
  return {
    app: undefined,
    async open() {
      await bolt.init();
      await sockets.start();
    },
    isReady: sockets.isConnected,
    close: sockets.stop,
  };
}

function overRequests(options: ConnectionOptions, signingSecret: string): Connection {
  const { log } = options;
  let isOpen = false;
  const requests = createRequests({
    signingSecret,
    boltLog: toBoltLogger(log),
    log,
    isTaking: () => isOpen,
    // Bolt itself compares with the machine's clock.
    now: Date.now,
  });
  const bolt = createBolt({ ...options, receiver: requests.receiver });
  return {
    app: requests.app,
    async open() {
      await bolt.init();
      isOpen = true;
    },
    isReady: () => isOpen,
    // Requests end with the server. Until then events that do not concern the bot, such as its own last messages, are
    // acknowledged, and the handlers refuse all others.
    close: async () => {},
  };
}
