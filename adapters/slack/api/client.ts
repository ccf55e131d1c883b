import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import { runWithin } from "../../../src/concurrency/deadlines.ts";
import { checkFences } from "../../../src/concurrency/fence.ts";
import { createUnderWay } from "../../../src/concurrency/under-way.ts";
import { createPauses } from "../../../src/pacing/pauses.ts";
import type { SharedWaits } from "../../../src/port/pace.ts";
import { SlackApiError, toNetworkError, toRateLimit } from "./error.ts";
import { API_URL, callMethod } from "./web-api.ts";
import type { Body } from "./wire.ts";

/** Longest one call may take. */
const CALL_TIMEOUT_MS = 12_000;
/** Refused tokens remembered. */
const MAX_TOKENS = 500;
/** Error codes after which Slack never accepts the token again. */
const DEAD_CODES = new Set(["token_revoked", "token_expired", "invalid_auth", "account_inactive", "not_authed"]);

/** Every call of the process to the Web API, except those that make and keep the connection. */
export interface SlackApi {
  /**
   * Calls a method as the app in that workspace. Rejects with a `SlackApiError` for any answer but success, and with
   * `signal.reason`. Never makes a call twice, and never waits for a rate limit: until it ends, further calls of the same
   * method are refused here as Slack would refuse them, also when another process met the limit.
   */
  call(teamId: string, method: string, args: Body, signal: AbortSignal): Promise<Body>;
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
}

export function createSlackApi({ apiUrl = API_URL, tokenOf, onRefused, now, waits }: SlackApiOptions): SlackApi {
  const dead = new BoundedMap<string, true>(MAX_TOKENS);
  const pauses = createPauses(now, waits);
  const underWay = createUnderWay();

  async function findToken(teamId: string, method: string, signal: AbortSignal): Promise<string> {
    const token = await tokenOf(teamId, signal);
    const isKnown = token !== undefined && !dead.has(token);
    if (isKnown) return token;
    const code = token === undefined ? "app_not_installed" : "token_revoked";
    const why = token === undefined ? "the app is not installed there" : "its token was revoked";
    throw new SlackApiError(method, `No call is made to workspace ${teamId}: ${why}.`, { code, status: 0 });
  }

  async function make(teamId: string, method: string, args: Body, signal: AbortSignal): Promise<Body> {
    signal.throwIfAborted();
    const token = await findToken(teamId, method, signal);
    // A write may be several calls, and its process may have stood still between them.
    await checkFences();
    signal.throwIfAborted();
    const limit = `${teamId} ${method}`;
    const leftMs = pauses.left(limit);
    if (leftMs > 0) throw toRateLimit(method, leftMs);
    try {
      return await runWithin(CALL_TIMEOUT_MS, (bound) => callMethod({ apiUrl, token }, method, args, bound), signal);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const refusal = error instanceof SlackApiError ? error : toNetworkError(method, error);
      if (refusal.retryAfterMs !== undefined) pauses.note(limit, refusal.retryAfterMs);
      if (DEAD_CODES.has(refusal.code)) {
        dead.set(token, true);
        onRefused?.(teamId, refusal);
      }
      throw refusal;
    }
  }

  return {
    call: (teamId, method, args, signal) => underWay.hold(make(teamId, method, args, signal)),
    tokenOf: (teamId, signal) => findToken(teamId, "files", signal),
    settled: underWay.settled,
  };
}
