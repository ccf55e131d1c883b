import type { BudgetHeaders, CallKind } from "../../../src/pacing/call.ts";

/** How a fake platform judges a call that arrives. */
export type Verdict = { ok: true; headers: BudgetHeaders } | { ok: false; retryAfter: number };

/** One counter of a platform: asked in the order of arrival. */
export interface PlatformCounter {
  take(at: number): Verdict;
}

/** Windows of `w` seconds, anchored at their first call. */
export function fixedCounter(n: number, w: number): PlatformCounter {
  let start = -Infinity;
  let used = 0;
  return {
    take(at) {
      if (at >= start + w) {
        start = at;
        used = 0;
      }
      const resetAfter = start + w - at;
      if (used >= n) return { ok: false, retryAfter: resetAfter };
      used += 1;
      return { ok: true, headers: { limit: n, remaining: n - used, resetAfter } };
    },
  };
}

/** A bucket `n` deep that drains one call every `w / n` seconds; the header says when it is empty. */
export function leakyCounter(n: number, w: number): PlatformCounter {
  let level = 0;
  let last = 0;
  const q = w / n;
  return {
    take(at) {
      level = Math.max(0, level - (at - last) / q);
      last = at;
      if (level + 1 > n + 1e-9) return { ok: false, retryAfter: (level + 1 - n) * q };
      level += 1;
      return { ok: true, headers: { limit: n, remaining: Math.floor(n - level + 1e-9), resetAfter: level * q } };
    },
  };
}

/** At most `n` calls in any `w` seconds; the header says when the last of them is out of the window. */
export function slidingCounter(n: number, w: number, wholeSeconds = false): PlatformCounter {
  let calls: number[] = [];
  return {
    take(at) {
      calls = calls.filter((call) => call > at - w);
      const oldest = calls[0] ?? at;
      if (calls.length >= n) {
        const retryAfter = oldest + w - at;
        return { ok: false, retryAfter: wholeSeconds ? Math.ceil(retryAfter) : retryAfter };
      }
      calls.push(at);
      return { ok: true, headers: { limit: n, remaining: n - calls.length, resetAfter: oldest + w - at } };
    },
  };
}

/** Which counter a call meets: by its kind, by the reply's room, and by the way it is written. */
export type Platform = (kind: CallKind, room: string, isFallback: boolean) => PlatformCounter;

/** A Discord channel: one counter, or one for posts and one for edits. */
export function discordPlatform(create: () => PlatformCounter, counters: 1 | 2): Platform {
  const edits = create();
  const posts = counters === 2 ? create() : edits;
  return (kind) => (kind === "post" ? posts : edits);
}

/** A Slack workspace with its documented limits. `native`: streams, beside messages that are updated. */
export function slackPlatform(method: "update" | "append" | "native"): Platform {
  const minute = (n: number) => slidingCounter(n, 60, true);
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
    const counter = rooms.get(room) ?? slidingCounter(1, 1, true);
    rooms.set(room, counter);
    return counter;
  };
}
