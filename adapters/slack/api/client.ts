import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import { runWithin } from "../../../src/concurrency/deadlines.ts";
import { createUnderWay } from "../../../src/concurrency/under-way.ts";
import { createPauses } from "../../../src/pacing/pauses.ts";
import { ApiError, toNetworkError, toRateLimit } from "./error.ts";
import { API_URL, callMethod } from "./web-api.ts";
import type { Body } from "./wire.ts";

const CALL_TIMEOUT_MS = 12_000;
const MAX_TOKENS = 500;
/** After one of these error codes, Slack never accepts the token again. */
const DEAD_CODES = new Set(["token_revoked", "token_expired", "invalid_auth", "account_inactive", "not_authed"]);

/** Makes the process's calls to the Web API, except those that open and keep the connection. */
export interface SlackApi {
  /**
   * Calls a method as the app in that workspace. Rejects with an `ApiError` unless the call succeeds, or with
   * `signal.reason`. Never retries a call. Never waits for a rate limit: until it ends, rejects calls to the method.
   */
  call(teamId: string, method: string, args: Body, signal: AbortSignal): Promise<Body>;
  /** Rejects with an `ApiError` if the app is not installed, or if Slack no longer accepts its token. */
  tokenOf(teamId: string, signal: AbortSignal): Promise<string>;
  settled(): Promise<void>;
}

export interface SlackApiOptions {
  /** The Web API's base URL, which ends in `/api/`; by default Slack's. */
  apiUrl?: string | undefined;
  /** Undefined if the app is not installed. */
  tokenOf(teamId: string, signal: AbortSignal): Promise<string | undefined>;
  /** Called when Slack will never accept this workspace's token again. */
  onRefused?(teamId: string, error: ApiError): void;
  /** Milliseconds of a monotonic clock. */
  now(): number;
}

export function createSlackApi({ apiUrl = API_URL, tokenOf, onRefused, now }: SlackApiOptions): SlackApi {
  const dead = new BoundedMap<string, true>(MAX_TOKENS);
  const pauses = createPauses(now);
  const underWay = createUnderWay();

  async function findToken(teamId: string, method: string, signal: AbortSignal): Promise<string> {
    const token = await tokenOf(teamId, signal);
    const isKnown = token !== undefined && !dead.has(token);
    if (isKnown) return token;
    const code = token === undefined ? "app_not_installed" : "token_revoked";
    const why = token === undefined ? "the app is not installed there" : "its token was revoked";
    throw new ApiError(method, `Cannot call Slack for workspace ${teamId}: ${why}.`, { code, status: 0 });
  }

  async function make(teamId: string, method: string, args: Body, signal: AbortSignal): Promise<Body> {
    signal.throwIfAborted();
    const token = await findToken(teamId, method, signal);
    const limit = `${teamId} ${method}`;
    const leftMs = pauses.left(limit);
    if (leftMs > 0) throw toRateLimit(method, leftMs);
    // Names the workspace, because an organisation's token does not identify one. With any other token, Slack ignores
    // this name. https://docs.slack.dev/enterprise/organization-ready-apps
    const named = teamId === "" ? args : { team_id: teamId, ...args };
    try {
      return await runWithin(CALL_TIMEOUT_MS, (bound) => callMethod({ apiUrl, token }, method, named, bound), signal);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const refusal = error instanceof ApiError ? error : toNetworkError(method, error);
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
