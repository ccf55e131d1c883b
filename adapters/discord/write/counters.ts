/** Models of how Discord counts calls. */
import type { CallKind } from "../../../src/port/pace.ts";

/** Two reset times that are this close belong to the same reset. */
export const SAME_RESET_MS = 20;

/** A meter's knowledge about its counter, shared by all models of the counter. */
export interface Rule {
  /** Calls per window: the capacity of a leaky counter. */
  limit: number;
  /** The time in which a full leaky counter empties. */
  windowMs: number;
  tripMs: number;
  calls: OwnCalls;
}

/** One observation: an accepted call and the headers of its response. */
export interface Reading {
  kind: CallKind;
  sentAt: number;
  answeredAt: number;
  /** Milliseconds until the reset, from the headers. */
  resetMs: number;
  /** Calls left, from the headers. */
  remaining: number;
  /** The reset happens between these two times. */
  resetFrom: number;
  resetUntil: number;
  /** Other calls of this bot that were in flight. The response may or may not have counted them. */
  inFlight: number;
}

export interface Counter {
  credit(at: number): number;
  sent(now: number): void;
  observe(reading: Reading): void;
  /** Handles a 429, whose wait ends at `until`. */
  refused(until: number): void;
  /** The time between calls that spreads the remaining calls evenly. */
  gap(now: number): number;
  /** The times at which calls can become available again. */
  returns(): number[];
}

/** Milliseconds between calls that are spread evenly. */
export function toSpacing({ limit, windowMs }: Rule): number {
  return windowMs / limit;
}

export interface OwnCall {
  at: number;
  /** Infinity until the response arrives. */
  answeredAt: number;
  kind: CallKind;
}

/** This bot's calls against one counter, oldest first. */
export interface OwnCalls {
  add(call: OwnCall): void;
  answered(at: number, kind: CallKind, now: number): void;
  /** Removes a call that turns out to count against another counter. */
  remove(at: number, kind: CallKind): OwnCall | undefined;
  /** Forgets calls that are too old to matter for a window of this length or for a response. */
  prune(now: number, windowMs: number): void;
  unanswered(): number;
  /** Counts the other calls that were in flight together with a completed one. */
  overlapping(at: number, answeredAt: number): number;
  /** Counts the calls since `at`, and those in flight at that time. */
  since(at: number): number;
  last(): number;
  all(): readonly OwnCall[];
}

/** Completed calls are remembered for two windows plus this time. */
const KEPT_MS = 10_000;

export function createOwnCalls(): OwnCalls {
  let calls: OwnCall[] = [];
  return {
    add(call) {
      calls.push({ ...call });
      calls.sort((a, b) => a.at - b.at);
    },
    answered(at, kind, now) {
      const call = calls.find((one) => one.at === at && one.kind === kind && one.answeredAt === Infinity);
      if (call !== undefined) call.answeredAt = now;
    },
    remove(at, kind) {
      const index = calls.findIndex((one) => one.at === at && one.kind === kind);
      return index === -1 ? undefined : calls.splice(index, 1)[0];
    },
    prune(now, windowMs) {
      calls = calls.filter((call) => call.answeredAt > now - 2 * windowMs - KEPT_MS);
    },
    unanswered: () => calls.filter((call) => call.answeredAt === Infinity).length,
    overlapping: (at, answeredAt) =>
      Math.max(0, calls.filter((call) => call.at <= answeredAt && call.answeredAt > at).length - 1),
    since: (at) => calls.filter((call) => call.at >= at || call.answeredAt > at).length,
    last: () => calls.at(-1)?.at ?? -Infinity,
    all: () => calls,
  };
}

// --- a fixed window ---

/** Without a response to its first call, a window stays open for two round trips plus this time. */
const UNANSWERED_MARGIN_MS = 500;

/** The state of a window that is already open when the counter turns out to be a fixed window. */
export interface FixedStart {
  startedAt: number;
  resetAt: number;
  used: number;
}

export interface FixedCounter extends Counter {
  adopt(start: FixedStart): void;
  /** True while the call that opened the window has no response. */
  isOpening(sentAt: number): boolean;
  /** True if a window started with less than its full limit. Then the counter is not a fixed window. */
  isRefuted(): boolean;
}

/** Each window starts with its first call, lasts `windowMs` and allows `limit` calls. */
export function createFixedCounter(rule: Rule): FixedCounter {
  let resetAt = -Infinity;
  let startedAt = -Infinity;
  let used = 0;
  /** When the call that opened the window was sent; undefined once its response has arrived. */
  let openedAt: number | undefined;
  /** True if a window started with its full limit although the one before was used. */
  let proven = false;
  let refuted = false;

  function credit(at: number): number {
    if (at >= resetAt) return proven ? rule.limit : 1;
    return openedAt !== undefined && !proven ? 0 : rule.limit - used;
  }

  function judge({ kind, sentAt, remaining, inFlight }: Reading): void {
    if (remaining < rule.limit - 1 - inFlight) refuted = true;
    // Compares only calls of the same kind, because the other kind can have its own counter.
    const isBefore = (call: OwnCall) => call.kind === kind && call.at < sentAt && call.at >= sentAt - rule.windowMs;
    const before = rule.calls.all().some((call) => isBefore(call) && call.answeredAt < Infinity);
    if (remaining === rule.limit - 1 && inFlight === 0 && before) proven = true;
  }

  function observe(reading: Reading): void {
    const { sentAt, resetFrom, resetUntil, remaining } = reading;
    if (sentAt < startedAt) return;
    const isOpening = sentAt === openedAt;
    if (isOpening) openedAt = undefined;
    const isLate = resetFrom > resetAt + SAME_RESET_MS;
    if (isLate) {
      startedAt = sentAt;
      resetAt = resetUntil;
      used = Math.max(rule.calls.since(sentAt), rule.limit - remaining);
    } else {
      resetAt = Math.min(resetAt, resetUntil);
      used = Math.max(used, rule.limit - remaining);
    }
    if (isOpening || isLate) judge(reading);
  }

  return {
    credit,
    observe,
    adopt(start) {
      ({ startedAt, resetAt, used } = start);
      openedAt = undefined;
      proven = false;
      refuted = false;
    },
    isOpening: (sentAt) => sentAt === openedAt,
    isRefuted: () => refuted,
    sent(now) {
      if (now < resetAt) {
        used += 1;
        return;
      }
      startedAt = now;
      openedAt = now;
      // Includes this call, which has no response yet.
      used = rule.calls.unanswered();
      resetAt = now + rule.windowMs + 2 * rule.tripMs + UNANSWERED_MARGIN_MS;
    },
    refused(until) {
      // Ignores a refusal whose wait ends before the window: it comes from another limit, such as a shared one.
      if (openedAt === undefined && until < resetAt) return;
      used = rule.limit;
      resetAt = until;
      proven = false;
      openedAt = undefined;
    },
    gap(now) {
      if (now >= resetAt) return 0.35 * toSpacing(rule);
      return (resetAt - rule.calls.last()) / (Math.max(0, rule.limit - used) + 1);
    },
    returns: () => [resetAt],
  };
}

// --- a leaky bucket ---

export interface LeakyCounter extends Counter {
  /** The number of available calls, with the fraction of the next one. */
  level(at: number): number;
}

/** The pace spreads a bucket's spare calls over about this time. */
const SPENDING_MS = 2_000;

/** The bucket holds `limit` calls and drains one every `windowMs / limit`. The reset header says when it is empty. */
export function createLeakyCounter(rule: Rule): LeakyCounter {
  let fullAt = -Infinity;
  const spacing = () => toSpacing(rule);
  const level = (at: number) => rule.limit - Math.max(0, fullAt - at) / spacing();

  return {
    level,
    credit: (at) => Math.floor(level(at)),
    sent(now) {
      fullAt = Math.max(fullAt, now) + spacing();
    },
    observe({ resetUntil, inFlight }) {
      fullAt = resetUntil + inFlight * spacing();
    },
    refused(until) {
      fullAt = Math.max(fullAt, until + (rule.limit - 1) * spacing());
    },
    // Spends saved calls: the more calls are saved, the faster. With none saved, calls have the bucket's drain rate.
    gap: (now) => 1 / (1 / spacing() + Math.max(0, level(now) - 1.5) / SPENDING_MS),
    returns: () => Array.from({ length: rule.limit }, (_, missing) => fullAt - missing * spacing()),
  };
}

// --- no model ---

/** The minimum uncertainty about when a call reaches the platform. */
const LEAST_MARGIN_MS = 120;

/**
 * Counts the bot's own calls in the last window, and obeys headers that report fewer calls left. Correct for a sliding
 * window, and safe until the kind of the counter is known.
 */
export function createLoggedCounter(rule: Rule): Counter {
  /** The remaining calls according to the latest headers, valid until their window ends. */
  let rest = { left: Infinity, until: -Infinity };
  /** From the time `from`, calls sent up to `upTo` no longer count, because the headers announced a reset at `from`. */
  let empty = { from: Infinity, upTo: -Infinity };

  const span = () => rule.windowMs + Math.max(LEAST_MARGIN_MS, rule.tripMs);
  const counted = (at: number) =>
    rule.calls.all().filter((call) => call.at > at - span() && !(at >= empty.from && call.at <= empty.upTo));

  function credit(at: number): number {
    const free = rule.limit - counted(at).length;
    return at < rest.until ? Math.min(free, rest.left) : free;
  }

  return {
    credit,
    sent() {
      rest.left -= 1;
    },
    observe({ sentAt, remaining, resetUntil, inFlight }: Reading) {
      rest = { left: remaining - inFlight, until: resetUntil };
      if (remaining === rule.limit - 1 && inFlight === 0) empty = { from: resetUntil, upTo: sentAt };
    },
    refused() {},
    gap(now) {
      const oldest = counted(now)[0];
      if (oldest === undefined) return 0.35 * toSpacing(rule);
      return (oldest.at + span() - rule.calls.last()) / (Math.max(0, credit(now)) + 1);
    },
    returns: () => [...rule.calls.all().map((call) => call.at + span()), rest.until, empty.from],
  };
}
