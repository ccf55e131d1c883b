import { AsyncLocalStorage } from "node:async_hooks";
import { type FetchFunction, LogLevel, type Logger as SlackLogger, WebClient } from "@slack/web-api";
import type { Logger } from "pino";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import { runWithin } from "../../../src/concurrency/deadlines.ts";
import type { SharedWaits } from "../../../src/port/pace.ts";
import { type ResponseInfo, SlackApiError, toApiError, toRateLimit } from "./error.ts";
import { createPauses } from "./rate-limits.ts";

/** Longest one call may take. The client's own timeout is not used: its timer runs on after the call and rejects unheard. */
const CALL_TIMEOUT_MS = 12_000;
/** Clients and refused tokens remembered. */
const MAX_TOKENS = 500;
/** Error codes after which Slack never accepts the token again. */
const DEAD_CODES = new Set(["token_revoked", "token_expired", "invalid_auth", "account_inactive", "not_authed"]);

export type SlackArguments = Readonly<Record<string, unknown>>;
export type SlackAnswer = Readonly<Record<string, unknown>>;

/** Every call of the process to the Web API, except those that make and keep the connection. */
export interface SlackApi {
  /**
   * Calls a method as the app in that workspace. Rejects with a `SlackApiError` for any answer but success, and with
   * `signal.reason`. Never makes a call twice, and never waits for a rate limit: until it ends, further calls of the same
   * method are refused here as Slack would refuse them, also when another process met the limit.
   */
  call(teamId: string, method: string, args: SlackArguments, signal: AbortSignal): Promise<SlackAnswer>;
  /** Rejects with a `SlackApiError` where the app is not installed, or its token is not taken any more. */
  tokenOf(teamId: string, signal: AbortSignal): Promise<string>;
  /** Resolves when no call is under way. */
  settled(): Promise<void>;
}

export interface SlackApiOptions {
  /** Web API base that ends in `/api/`; Slack's own when absent. */
  apiUrl?: string | undefined;
  /** Undefined where the app is not installed. */
  tokenOf(teamId: string, signal: AbortSignal): Promise<string | undefined>;
  /** Slack will never take this workspace's token again. */
  onRefused?(teamId: string, error: SlackApiError): void;
  /** Milliseconds. */
  now(): number;
  /** Shares rate-limit pauses with other processes; absent: there are none. */
  waits?: SharedWaits | undefined;
  log: Logger;
}

/** One call under way: Slack's client passes neither signals nor statuses to its fetch, so they travel beside it. */
interface CallUnderWay extends ResponseInfo {
  signal: AbortSignal;
}

export function createSlackApi({ apiUrl, tokenOf, onRefused, now, waits, log }: SlackApiOptions): SlackApi {
  const flights = new AsyncLocalStorage<CallUnderWay>();
  const clients = new BoundedMap<string, WebClient>(MAX_TOKENS);
  const dead = new BoundedMap<string, true>(MAX_TOKENS);
  const pauses = createPauses(now, waits);
  const underWay = new Set<Promise<unknown>>();
  const fetch = createFetch(flights);
  const logger = toSlackLogger((...words) =>
    log.debug({ words: words.map(String).join(" ").slice(0, 300) }, "slack client"),
  );

  function clientOf(token: string): WebClient {
    const known = clients.get(token);
    if (known !== undefined) return known;
    const client = new WebClient(token, {
      ...(apiUrl !== undefined && { slackApiUrl: apiUrl }),
      // A call that waits in the client's own queue would be run with another one's signal.
      maxRequestConcurrency: Infinity,
      retryConfig: { retries: 0 },
      rejectRateLimitedCalls: true,
      allowAbsoluteUrls: false,
      fetch,
      logger,
    });
    clients.set(token, client);
    return client;
  }

  async function findToken(teamId: string, method: string, signal: AbortSignal): Promise<string> {
    const token = await tokenOf(teamId, signal);
    const isKnown = token !== undefined && !dead.has(token);
    if (isKnown) return token;
    const code = token === undefined ? "app_not_installed" : "token_revoked";
    const why = token === undefined ? "the app is not installed there" : "its token was revoked";
    throw new SlackApiError(method, `No call is made to workspace ${teamId}: ${why}.`, { code, status: 0 });
  }

  async function make(teamId: string, method: string, args: SlackArguments, signal: AbortSignal): Promise<SlackAnswer> {
    signal.throwIfAborted();
    const token = await findToken(teamId, method, signal);
    signal.throwIfAborted();
    const leftMs = pauses.left(teamId, method);
    if (leftMs > 0) throw toRateLimit(method, leftMs);
    const flight: CallUnderWay = { signal, status: 0, retryAfterS: undefined };
    try {
      const answer = await runWithin(
        CALL_TIMEOUT_MS,
        (bound) =>
          flights.run(Object.assign(flight, { signal: bound }), () => clientOf(token).apiCall(method, { ...args })),
        signal,
      );
      return { ...answer };
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const refusal = toApiError(method, error, flight);
      if (refusal.retryAfterMs !== undefined) pauses.note(teamId, method, refusal.retryAfterMs);
      if (DEAD_CODES.has(refusal.code)) {
        dead.set(token, true);
        clients.delete(token);
        onRefused?.(teamId, refusal);
      }
      throw refusal;
    }
  }

  return {
    call(teamId, method, args, signal) {
      const making = make(teamId, method, args, signal);
      const settling = making.then(noop, noop).finally(() => underWay.delete(settling));
      underWay.add(settling);
      return making;
    },
    tokenOf: (teamId, signal) => findToken(teamId, "files", signal),
    settled: async () => void (await Promise.all(underWay)),
  };
}

/** `fetch`, because it unpacks an answer that a proxy packed unasked, which undici's `request` does not. */
function createFetch(flights: AsyncLocalStorage<CallUnderWay>): FetchFunction {
  return async (url, init) => {
    const flight = flights.getStore();
    const response = await globalThis.fetch(url, { ...(init as RequestInit), signal: flight?.signal ?? null });
    if (flight !== undefined) {
      const retryAfterS = Number.parseFloat(response.headers.get("retry-after") ?? "");
      flight.status = response.status;
      flight.retryAfterS = Number.isNaN(retryAfterS) ? undefined : retryAfterS;
    }
    return response;
  };
}

/** Passes the warnings and errors of Slack's client to `say`; it throws them as well. Its debug lines hold people's words. */
export function toSlackLogger(say: (...words: unknown[]) => void): SlackLogger {
  return {
    debug: noop,
    info: noop,
    warn: say,
    error: say,
    setLevel: noop,
    getLevel: () => LogLevel.ERROR,
    setName: noop,
  };
}

function noop(): void {}
