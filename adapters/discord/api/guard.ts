import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import { createPauses } from "../../../src/pacing/pauses.ts";
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

export interface GuardedCall {
  /** Names a limit of Discord's. */
  what: string;
  hasFiles?: boolean;
  /** False for a call that answers an interaction. */
  isBot?: boolean;
}

/** Keeps the bot from being shut out: calls that would be refused anyway are not made. */
export interface Guard {
  /** Throws an `ApiError` instead of a call that may not be made at the moment. */
  check(call: GuardedCall): void;
  /** Counts a refusal, and remembers how long it forbids further calls. */
  note(call: GuardedCall, error: ApiError): void;
}

/** Names every call from this address. */
const ALL = "all";
/** Names every call that is made as the bot. */
const OF_BOT = "of the bot";

/** All `processes` are taken to share one address: each gets its part of the limit, and all keep a wait told to one. */
export function createGuard(now: () => number, processes = () => 1, waits?: SharedWaits): Guard {
  let refused: number[] = [];
  const forbidden = new BoundedMap<string, { until: number; error: ApiError }>(MAX_REMEMBERED);
  const pauses = createPauses(now, waits);
  /** This process has used up its part of the refusals. */
  let spentUntil = 0;

  function count(): void {
    refused = refused.filter((at) => at > now() - REFUSALS_MS);
    refused.push(now());
    if (refused.length >= MAX_REFUSED / processes()) spentUntil = (refused[0] ?? now()) + REFUSALS_MS;
  }

  return {
    check(call) {
      const waitMs = Math.max(spentUntil - now(), pauses.left(ALL));
      if (waitMs > 0) throw toWait("No call is made to Discord for a while, because it refused too many.", waitMs);
      // Discord lets interactions be answered while the bot waits: https://docs.discord.com/developers/topics/rate-limits
      const botMs = call.isBot === false ? 0 : pauses.left(OF_BOT);
      const leftMs = Math.max(botMs, pauses.left(call.what));
      if (leftMs > 0) throw toWait("Discord has asked to wait with such calls.", leftMs);
      const right = toRight(call);
      const known = forbidden.get(right);
      if (known === undefined) return;
      if (known.until > now()) throw known.error;
      forbidden.delete(right);
    },
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

/** A bot that may not attach files may still write. */
function toRight({ what, hasFiles = false }: GuardedCall): string {
  return hasFiles ? `${what} with files` : what;
}

function toWait(message: string, retryAfterMs: number): ApiError {
  return new ApiError(message, { status: 429, code: 0, retryAfterMs });
}

/** Discord allows a bot fifty calls a second over all channels; this leaves a margin for calls that overtake others. */
const MAX_CALLS = 45;
const CALLS_MS = 1_100;
/** The part of them for calls beside the answers: reads of many channels at once must not hold those back. */
const BESIDE_SHARE = 0.5;

/** Keeps the calls of any second few enough, all processes of the bot together. */
export interface GlobalLimit {
  /** Counts a call, of an answer or beside the answers. Throws an `ApiError` instead where there were too many. */
  take(isBeside: boolean): void;
}

/** Replaces the library's own counter, whose fixed seconds let twice as many calls through around their ends. */
export function createGlobalLimit(now: () => number = () => performance.now(), processes = () => 1): GlobalLimit {
  let made: Array<{ at: number; isBeside: boolean }> = [];

  function check(calls: typeof made, most: number): void {
    const oldest = calls.at(-Math.max(1, Math.floor(most)));
    if (oldest === undefined) return;
    const message = "The bot makes more calls per second than Discord allows it over all channels.";
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
