import { createHash } from "node:crypto";
import { fixedCounter, leakyCounter, type PlatformCounter, slidingCounter } from "../pacing/platform.ts";
import type { Clock } from "./clock.ts";
import { Refusal } from "./refusals.ts";
import type { Violations } from "./violations.ts";

/**
 * `fixed`: a window starts with its first call. `leaky`: calls become available again one by one. `sliding`: the limit
 * holds in any window.
 */
export interface CounterSettings {
  kind: "fixed" | "leaky" | "sliding";
  limit: number;
  windowMs: number;
}

export interface LimitSettings {
  /** Limits for posts and edits in a channel. */
  messages: CounterSettings;
  /**
   * Discord does not document whether posts and edits share a counter. It has been seen to send one hash for two
   * counters.
   */
  postsAndEdits: "one-bucket" | "two-buckets" | "one-hash-two-counters";
  /** Limits per webhook route and interaction token. */
  interactions: CounterSettings;
  /** Limits of all other routes, per channel or guild. */
  other: CounterSettings;
  /** Limits of single routes, such as `"GET /channels/:channel/messages"`. They override the other limits. */
  routes: Readonly<Record<string, CounterSettings>>;
  globalPerSecond: number;
  /** If false, responses have no rate-limit headers. */
  headers: boolean;
}

const FIVE_PER_FIVE_SECONDS: CounterSettings = { kind: "fixed", limit: 5, windowMs: 5000 };

export const DEFAULT_LIMITS: LimitSettings = {
  messages: FIVE_PER_FIVE_SECONDS,
  postsAndEdits: "one-bucket",
  interactions: FIVE_PER_FIVE_SECONDS,
  other: { kind: "fixed", limit: 10, windowMs: 5000 },
  routes: {},
  globalPerSecond: 50,
  headers: true,
};

const POST = "POST /channels/:channel/messages";
const EDIT = "PATCH /channels/:channel/messages/:message";

/** The properties of a call that the counters need. */
export interface CountedCall {
  /** Method and pattern. */
  route: string;
  /** The channel, the guild, or the webhook with its token. */
  major: string;
  /** False for interaction endpoints, which do not count towards the bot's calls per second. */
  isGlobal: boolean;
}

export interface Limits {
  /** Counts a call and returns the headers of its response. Throws a 429 if the limit is reached. */
  take(call: CountedCall): Readonly<Record<string, string>>;
  /** Records a wait that Discord requested. A call in the same bucket before the wait ends is a violation. */
  block(call: CountedCall, retryAfterMs: number): void;
}

interface Bucket {
  counter: PlatformCounter;
  blockedUntilMs: number;
}

export function createLimits(settings: LimitSettings, clock: Clock, violations: Violations): Limits {
  const buckets = new Map<string, Bucket>();
  const global: Bucket = { counter: fixedCounter(settings.globalPerSecond, 1_000), blockedUntilMs: 0 };

  function bucketOf(call: CountedCall): Bucket {
    const isApart = settings.postsAndEdits === "one-hash-two-counters";
    const key = `${isApart ? call.route : groupOf(call.route, settings)} ${call.major}`;
    const bucket = buckets.get(key) ?? { counter: createCounter(settingsOf(call.route, settings)), blockedUntilMs: 0 };
    buckets.set(key, bucket);
    return bucket;
  }

  function takeGlobal(call: CountedCall, nowMs: number): void {
    const verdict = global.counter.take(nowMs);
    if (verdict.ok) return;
    violations.record("rate-limited", `${call.route} was more than ${settings.globalPerSecond} calls in a second.`);
    throw refuseCall(verdict.retryAfterMs, { "X-RateLimit-Global": "true", "X-RateLimit-Scope": "global" });
  }

  return {
    take(call) {
      const nowMs = clock.now();
      if (call.isGlobal) takeGlobal(call, nowMs);
      const bucket = bucketOf(call);
      const { limit, windowMs, kind } = settingsOf(call.route, settings);
      const name = hashOf(groupOf(call.route, settings));
      const headers = (remaining: number, resetAfterMs: number): Record<string, string> => ({
        "X-RateLimit-Limit": String(limit),
        "X-RateLimit-Remaining": String(remaining),
        "X-RateLimit-Reset": ((nowMs + resetAfterMs) / 1_000).toFixed(3),
        "X-RateLimit-Reset-After": (resetAfterMs / 1_000).toFixed(3),
        "X-RateLimit-Bucket": name,
      });
      const blockedMs = bucket.blockedUntilMs - nowMs;
      if (blockedMs > 0) {
        const wait = `${(blockedMs / 1000).toFixed(2)} s before the end of a wait it had been told`;
        violations.record("early-retry", `${call.route} (${call.major}) came ${wait}.`);
        throw refuseCall(blockedMs, { ...headers(0, blockedMs), "X-RateLimit-Scope": "user" });
      }
      const verdict = bucket.counter.take(nowMs);
      if (verdict.ok) return settings.headers ? headers(verdict.headers.remaining, verdict.headers.resetAfterMs) : {};
      bucket.blockedUntilMs = nowMs + verdict.retryAfterMs;
      const rule = `${limit} per ${windowMs / 1000} s, ${kind}`;
      const empty = `met an empty bucket (${rule}), ${(verdict.retryAfterMs / 1_000).toFixed(2)} s too early`;
      violations.record("rate-limited", `${call.route} (${call.major}) ${empty}.`);
      throw refuseCall(verdict.retryAfterMs, { ...headers(0, verdict.retryAfterMs), "X-RateLimit-Scope": "user" });
    },
    block(call, retryAfterMs) {
      const bucket = bucketOf(call);
      bucket.blockedUntilMs = Math.max(bucket.blockedUntilMs, clock.now() + retryAfterMs);
    },
  };
}

function settingsOf(route: string, settings: LimitSettings): CounterSettings {
  const own = settings.routes[route];
  if (own !== undefined) return own;
  if (route === POST || route === EDIT) return settings.messages;
  return route.includes(" /webhooks/") ? settings.interactions : settings.other;
}

function groupOf(route: string, { postsAndEdits }: LimitSettings): string {
  return route === EDIT && postsAndEdits !== "two-buckets" ? POST : route;
}

function hashOf(group: string): string {
  return createHash("sha256").update(group).digest("hex").slice(0, 32);
}

function createCounter({ kind, limit, windowMs }: CounterSettings): PlatformCounter {
  const create = { fixed: fixedCounter, leaky: leakyCounter, sliding: slidingCounter }[kind];
  return create(limit, windowMs);
}

function refuseCall(retryAfterMs: number, headers: Readonly<Record<string, string>>): Refusal {
  const retryAfter = retryAfterMs / 1_000;
  const global = headers["X-RateLimit-Global"] === "true";
  return new Refusal(
    429,
    { message: "You are being rate limited.", retry_after: Number(retryAfter.toFixed(3)), global },
    { ...headers, "Retry-After": String(Math.max(1, Math.ceil(retryAfter))) },
  );
}
