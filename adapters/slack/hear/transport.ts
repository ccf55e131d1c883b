import { type App, type Logger as BoltLogger, LogLevel } from "@slack/bolt";
import type { Hono } from "hono";
import type { Logger } from "pino";
import type { SlackAdapterOptions } from "../options.ts";
import { createRequests } from "./requests.ts";
import { createSockets } from "./sockets.ts";

/** With two sockets, one can be refreshed while the other delivers. */
const SOCKETS = 2;

export interface TransportOptions extends Pick<SlackAdapterOptions, "transport" | "apiUrl" | "onFatal" | "log"> {
  /** Handles and acknowledges one delivery. Rejects if Slack must not get an acknowledgement. */
  take: App["processEvent"];
}

export interface Transport {
  /** Routes for this service's HTTP server. Undefined in Socket Mode. */
  app: Hono | undefined;
  /** Resolves when Slack can deliver. Rejects with a plain sentence if a retry cannot help, or if it takes too long. */
  open(): Promise<void>;
  isReady(): boolean;
  /** Closes the sockets. Events in flight are not acknowledged, so Slack sends them again. */
  close(): Promise<void>;
}

export function createTransport({ transport, apiUrl, onFatal, log, take }: TransportOptions): Transport {
  const boltLog = toBoltLogger(log);
  if (transport.mode === "http") return overRequests(transport.signingSecret, { boltLog, log, take });
  const sockets = createSockets({
    appToken: transport.appToken,
    apiUrl,
    count: SOCKETS,
    boltLog,
    log,
    onFatal,
    take,
  });
  return { app: undefined, open: sockets.start, isReady: sockets.isConnected, close: sockets.stop };
}

interface RequestsParts extends Pick<TransportOptions, "log" | "take"> {
  boltLog: BoltLogger;
}

function overRequests(signingSecret: string, parts: RequestsParts): Transport {
  let isOpen = false;
  // Uses the wall clock, as Bolt does for timestamps.
  const app = createRequests({ ...parts, signingSecret, isTaking: () => isOpen, now: Date.now });
  return {
    app,
    open: async () => void (isOpen = true),
    isReady: () => isOpen,
    // The server ends the requests. Until then, the bot acknowledges events that do not concern it, for example its own
    // last messages. The handlers reject all other events.
    close: async () => {},
  };
}

/**
 * Forwards Bolt's log lines one level lower, because this adapter handles the errors that Bolt reports. Drops Bolt's
 * debug lines, which contain whole messages. Its other lines can quote messages, so they are `debug` here.
 */
export function toBoltLogger(log: Logger): BoltLogger {
  const say = (parts: readonly unknown[]) =>
    log.debug(`Bolt: ${parts.map((part) => (part instanceof Error ? part.message : String(part))).join(" ")}`);
  return {
    debug: () => {},
    info: (...parts) => say(parts),
    warn: (...parts) => say(parts),
    error(...parts) {
      const err = parts.find((part) => part instanceof Error);
      log.warn({ ...(err !== undefined && { err }) }, "Bolt reported a problem.");
      say(parts);
    },
    setLevel: () => {},
    // At the debug level, Bolt would log whole bodies.
    getLevel: () => LogLevel.INFO,
    setName: () => {},
  };
}
