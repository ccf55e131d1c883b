import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import type { SharedWaits } from "../../../src/port/pace.ts";
import { ApiError } from "./error.ts";

/**
 * Discord shuts out an address after 10,000 refused calls in ten minutes.
 * https://docs.discord.com/developers/topics/rate-limits#invalid-request-limit-aka-cloudflare-bans
 */
const REFUSALS_MS = 10 * 60_000;
const MAX_REFUSED = 5_000;
/** After a refusal for lack of permission the same is not tried again at once. */
const FORBIDDEN_MS = 30_000;
const BLOCK_MS = 60_000;
const MAX_REMEMBERED = 1_000;
const FORBIDDEN_CODES = new Set([50001, 50013, 50007, 50278]);
/** Cloudflare's own refusal. */
const SHUT_OUT = 40333;

/** Keeps the bot from being shut out: calls that would be refused anyway are not made. */
export interface Guard {
  /** Throws an `ApiError` instead of a call that may not be made at the moment. */
  check(what: string): void;
  /** Counts a refusal, and remembers how long it forbids further calls. */
  note(what: string, error: ApiError): void;
}

/** Names all calls of the bot. */
const ALL = "all";

/** All `processes` are taken to share one address: each gets its part of the limit, and all obey a pause told to one. */
export function createGuard(now: () => number, processes = () => 1, waits?: SharedWaits): Guard {
  let refused: number[] = [];
  let blockedUntil = 0;
  const forbidden = new BoundedMap<string, { until: number; error: ApiError }>(MAX_REMEMBERED);

  function block(untilMs: number): void {
    blockedUntil = Math.max(blockedUntil, untilMs);
  }
  function blockAll(forMs: number): void {
    block(now() + forMs);
    waits?.tell(ALL, forMs);
  }
  waits?.listen((_, forMs) => block(now() + forMs));

  function count(): void {
    refused = refused.filter((at) => at > now() - REFUSALS_MS);
    refused.push(now());
    if (refused.length >= MAX_REFUSED / processes()) block((refused[0] ?? now()) + REFUSALS_MS);
  }

  return {
    check(what) {
      const waitMs = blockedUntil - now();
      if (waitMs > 0) {
        const message = "No call is made to Discord for a while, because it refused too many.";
        throw new ApiError(message, { status: 429, code: 0, retryAfterMs: waitMs });
      }
      const known = forbidden.get(what);
      if (known === undefined) return;
      if (known.until > now()) throw known.error;
      forbidden.delete(what);
    },
    note(what, error) {
      const { status, code, retryAfterMs = 0, scope, isForeign } = error;
      if (status === 401 || status === 403 || (status === 429 && scope !== "shared")) count();
      if (status === 429 && (scope === "global" || isForeign)) blockAll(retryAfterMs);
      if (code === SHUT_OUT) blockAll(Math.max(retryAfterMs, BLOCK_MS));
      if (status !== 403 || !FORBIDDEN_CODES.has(code)) return;
      forbidden.set(what, { until: now() + FORBIDDEN_MS, error });
    },
  };
}

/** Discord allows a bot fifty calls a second over all channels; this leaves a margin for calls that overtake others. */
const MAX_CALLS = 45;
const CALLS_MS = 1_100;

/** Keeps the calls of any second few enough, all processes of the bot together. */
export interface GlobalLimit {
  /** Counts a call. Throws an `ApiError` instead where there were too many. */
  take(): void;
}

/** Replaces the library's own counter, whose fixed seconds let twice as many calls through around their ends. */
export function createGlobalLimit(now: () => number = () => performance.now(), processes = () => 1): GlobalLimit {
  let made: number[] = [];
  return {
    take() {
      made = made.filter((at) => at > now() - CALLS_MS);
      const most = Math.max(1, Math.floor(MAX_CALLS / processes()));
      const oldest = made.at(-most);
      if (oldest !== undefined) {
        const message = "The bot makes more calls per second than Discord allows it over all channels.";
        throw new ApiError(message, { status: 429, code: 0, retryAfterMs: Math.ceil(oldest + CALLS_MS - now()) });
      }
      made.push(now());
    },
  };
}
