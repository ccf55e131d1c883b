import type { BudgetHeaders, CallKind } from "../../src/port/pace.ts";

export type Verdict = { ok: true; headers: BudgetHeaders } | { ok: false; retryAfterMs: number };

/** One rate limit of a platform. Calls must be passed in the order of their arrival. */
export interface PlatformCounter {
  take(at: number): Verdict;
}

/** A limit in windows of `windowMs`. A window starts with its first call. */
export function fixedCounter(n: number, windowMs: number): PlatformCounter {
  let start = -Infinity;
  let used = 0;
  return {
    take(at) {
      if (at >= start + windowMs) {
        start = at;
        used = 0;
      }
      const resetAfterMs = start + windowMs - at;
      if (used >= n) return { ok: false, retryAfterMs: resetAfterMs };
      used += 1;
      return { ok: true, headers: { limit: n, remaining: n - used, resetAfterMs } };
    },
  };
}

/** A bucket of depth `n` that drains one call every `windowMs / n`. The response header says when it is empty. */
export function leakyCounter(n: number, windowMs: number): PlatformCounter {
  let level = 0;
  let last = 0;
  const q = windowMs / n;
  return {
    take(at) {
      level = Math.max(0, level - (at - last) / q);
      last = at;
      if (level + 1 > n + 1e-9) return { ok: false, retryAfterMs: (level + 1 - n) * q };
      level += 1;
      return { ok: true, headers: { limit: n, remaining: Math.floor(n - level + 1e-9), resetAfterMs: level * q } };
    },
  };
}

/** At most `n` calls in any `windowMs`. The response header says when the oldest call leaves the window. */
export function slidingCounter(n: number, windowMs: number, wholeSeconds = false): PlatformCounter {
  let calls: number[] = [];
  return {
    take(at) {
      calls = calls.filter((call) => call > at - windowMs);
      const oldest = calls[0] ?? at;
      if (calls.length >= n) {
        const retryAfterMs = oldest + windowMs - at;
        return { ok: false, retryAfterMs: wholeSeconds ? Math.ceil(retryAfterMs / 1_000) * 1_000 : retryAfterMs };
      }
      calls.push(at);
      return { ok: true, headers: { limit: n, remaining: n - calls.length, resetAfterMs: oldest + windowMs - at } };
    },
  };
}

/** Chooses the counter for a call. */
export type Platform = (kind: CallKind, room: string, isFallback: boolean) => PlatformCounter;

/** A Discord channel with one counter, or with one for posts and one for edits. */
export function discordPlatform(create: () => PlatformCounter, counters: 1 | 2): Platform {
  const edits = create();
  const posts = counters === 2 ? create() : edits;
  return (kind) => (kind === "post" ? posts : edits);
}

/** A Slack workspace with its documented limits. With `native`, replies use streams, and updates as the fallback. */
export function slackPlatform(method: "update" | "append" | "native"): Platform {
  const minute = (n: number) => slidingCounter(n, 60_000, true);
  if (method === "append") {
    const counters = { post: minute(20), edit: minute(100), final: minute(20) };
    return (kind) => counters[kind];
  }
  if (method === "native") {
    const [streams, messages] = [slackPlatform("append"), slackPlatform("update")];
    return (kind, room, isFallback) => (isFallback ? messages : streams)(kind, room, isFallback);
  }
  const edits = minute(50);
  const rooms = new Map<string, PlatformCounter>();
  return (kind, room) => {
    if (kind !== "post") return edits;
    const counter = rooms.get(room) ?? slidingCounter(1, 1_000, true);
    rooms.set(room, counter);
    return counter;
  };
}
