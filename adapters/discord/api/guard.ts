import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import { createPauses } from "../../../src/pacing/pauses.ts";
import { ApiError } from "./error.ts";

/**
 * Discord blocks an address after 10,000 refused calls in ten minutes.
 * https://docs.discord.com/developers/topics/rate-limits#invalid-request-limit-aka-cloudflare-bans
 */
const REFUSALS_MS = 10 * 60_000;
const MAX_REFUSED = 5_000;
/** Pause before a retry of a call that Discord refused because of a missing permission. */
const FORBIDDEN_MS = 30_000;
const BLOCK_MS = 60_000;
const MAX_REMEMBERED = 1_000;
const FORBIDDEN_CODES = new Set([50001, 50013, 50007, 50278]);
/** Discord's error code for a block by Cloudflare. */
const SHUT_OUT = 40333;

export interface GuardedCall {
  /** Identifies the rate limit that counts the call. */
  what: string;
  hasFiles?: boolean;
  /** False for a call that responds to an interaction. */
  isBot?: boolean;
}

/** Prevents calls that Discord would refuse anyway, so that it does not block the bot. */
export interface Guard {
  /** Throws an `ApiError` if the call is not allowed now. */
  check(call: GuardedCall): void;
  /** Refuses calls under this limit until Discord has reset the limit. */
  hold(call: GuardedCall, resetAfterMs: number): void;
  /** Counts a refused call, and remembers how long no further calls are allowed. */
  note(call: GuardedCall, error: ApiError): void;
}

/** The key of a pause for all calls from this machine's address. */
const ALL = "all";
/** The key of a pause for all calls with the bot's token. */
const OF_BOT = "of the bot";

/** Assumes that all `processes` share one address, so each gets its share of the limit. */
export function createGuard(now: () => number, processes = () => 1): Guard {
  let refused: number[] = [];
  const forbidden = new BoundedMap<string, { until: number; error: ApiError }>(MAX_REMEMBERED);
  const pauses = createPauses(now);
  /** Until this time the process makes no calls, because it has used up its share of refused calls. */
  let spentUntil = 0;

  function count(): void {
    refused = refused.filter((at) => at > now() - REFUSALS_MS);
    refused.push(now());
    if (refused.length >= MAX_REFUSED / processes()) spentUntil = (refused[0] ?? now()) + REFUSALS_MS;
  }

  return {
    check(call) {
      const waitMs = Math.max(spentUntil - now(), pauses.left(ALL));
      if (waitMs > 0)
        throw toWait("The bot pauses its calls to Discord for a while, because Discord refused too many.", waitMs);
      // Interactions can be answered while the bot must wait: https://docs.discord.com/developers/topics/rate-limits
      const botMs = call.isBot === false ? 0 : pauses.left(OF_BOT);
      const leftMs = Math.max(botMs, pauses.left(call.what));
      if (leftMs > 0) throw toWait("Discord is blocking these calls for a while.", leftMs);
      const right = toRight(call);
      const known = forbidden.get(right);
      if (known === undefined) return;
      if (known.until > now()) throw known.error;
      forbidden.delete(right);
    },
    hold: ({ what }, resetAfterMs) => pauses.note(what, resetAfterMs),
    note(call, error) {
      const { status, code, retryAfterMs = 0, scope, isForeign } = error;
      if (status === 401 || status === 403 || (status === 429 && scope !== "shared")) count();
      if (status === 429) pauses.note(isForeign ? ALL : scope === "global" ? OF_BOT : call.what, retryAfterMs);
      if (code === SHUT_OUT) pauses.note(ALL, Math.max(retryAfterMs, BLOCK_MS));
      if (status !== 403 || !FORBIDDEN_CODES.has(code)) return;
      forbidden.set(toRight(call), { until: now() + FORBIDDEN_MS, error });
    },
  };
}

/** Remembers refusals of calls with files separately, because a bot that cannot attach files can still write. */
function toRight({ what, hasFiles = false }: GuardedCall): string {
  return hasFiles ? `${what} with files` : what;
}

function toWait(message: string, retryAfterMs: number): ApiError {
  return new ApiError(message, { status: 429, code: 0, retryAfterMs });
}

/** Discord allows a bot 50 calls per second over all channels. This leaves a margin for calls that overtake others. */
const MAX_CALLS = 45;
const CALLS_MS = 1_100;
/** The share of the limit for calls that write no part of an answer: reading must not delay answers. */
const BESIDE_SHARE = 0.5;

export interface GlobalLimit {
  /** Counts a call. Throws an `ApiError` if there are too many. `isBeside`: the call writes no part of an answer. */
  take(isBeside: boolean): void;
}

/**
 * Counts in a sliding window. The library counts per full second, so twice as many calls can pass around its boundary.
 */
export function createGlobalLimit(now: () => number = () => performance.now(), processes = () => 1): GlobalLimit {
  let made: Array<{ at: number; isBeside: boolean }> = [];

  function check(calls: typeof made, most: number): void {
    const oldest = calls.at(-Math.max(1, Math.floor(most)));
    if (oldest === undefined) return;
    const message = "The bot has reached Discord's limit of calls per second across all channels.";
    throw toWait(message, Math.ceil(oldest.at + CALLS_MS - now()));
  }

  return {
    take(isBeside) {
      made = made.filter(({ at }) => at > now() - CALLS_MS);
      const most = MAX_CALLS / processes();
      check(made, most);
      const beside = made.filter((call) => call.isBeside);
      if (isBeside) check(beside, most * BESIDE_SHARE);
      made.push({ at: now(), isBeside });
    },
  };
}
