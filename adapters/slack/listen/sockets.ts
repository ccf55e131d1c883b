import { setTimeout as sleep } from "node:timers/promises";
import type { App, Logger as BoltLogger, Receiver } from "@slack/bolt";
import { WebAPIRateLimitedError } from "@slack/web-api";
import type { Logger } from "pino";
import { describeAuthError, isHopeless } from "../api/auth-errors.ts";
import { type Line, openLine, TOO_MANY } from "./socket.ts";

/** Until then a start that cannot reach Slack goes on trying. */
const START_MS = 90_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** A socket that ends sooner than this counts as a failure, at most as this many in a row. */
const SHORT_MS = 5_000;
const MAX_SHORT = 2;

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
  /** Those that deliver, and those that are not gone yet. */
  const [live, open] = [new Set<Line>(), new Set<Line>()];
  const closing = new AbortController();
  const opened = Promise.withResolvers<void>();
  let app: App | undefined;
  let isOpen = false;
  /** Slack counts what is opened, whichever socket it is for. */
  let refusedUntil = 0;
  let keeping: Promise<void>[] = [];

  /** Resolves to the number of failures in a row when the socket has ended. */
  async function holdOne(bolt: App, failures: number): Promise<number> {
    const line = await openLine({ ...options, app: bolt }, closing.signal);
    if (closing.signal.aborted) await line.close();
    const startedAt = performance.now();
    open.add(line);
    void line.gone.then(() => open.delete(line));
    live.add(line);
    isOpen = true;
    opened.resolve();
    const reason = await line.ended;
    live.delete(line);
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
        if (error instanceof WebAPIRateLimitedError) refusedUntil = performance.now() + error.retryAfter * 1_000;
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
      await Promise.all([...open].map((line) => line.close()));
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
