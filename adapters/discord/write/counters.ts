import type { CallKind } from "../../../src/port/pace.ts";

/** Two resets this close are the same one. */
export const SAME_RESET_MS = 20;

/** A meter's knowledge of its counter, of any kind. */
export interface Rule {
  /** Calls per window: the depth of a leaky counter. */
  limit: number;
  /** The time in which a full leaky counter empties. */
  windowMs: number;
  /** Upper estimate of the round trip. */
  tripMs: number;
  calls: OwnCalls;
}

/** A reading of a counter: an accepted call, and what the headers of its answer say. */
export interface Reading {
  kind: CallKind;
  sentAt: number;
  answeredAt: number;
  /** Time until the reset, as the headers have it. */
  resetMs: number;
  /** Calls left, as the headers have it. */
  remaining: number;
  /** The true instant of the reset lies between these two. */
  resetFrom: number;
  resetUntil: number;
  /** Other own calls in flight meanwhile: the answer may or may not have counted them. */
  inFlight: number;
}

/** One model of how a platform counts. */
export interface Counter {
  credit(at: number): number;
  sent(now: number): void;
  heard(reading: Reading): void;
  /** A 429 that ends at `until`. */
  refused(until: number): void;
  /** Time between calls that spreads what is left evenly. */
  gap(now: number): number;
  /** Moments at which credit may return. */
  returns(): number[];
}

/** Time between calls in the long run, milliseconds. */
export function toSpacing({ limit, windowMs }: Rule): number {
  return windowMs / limit;
}

/** One call of ours against a counter. */
export interface OwnCall {
  at: number;
  /** Infinity until it is answered. */
  answeredAt: number;
  kind: CallKind;
}

/** The calls made against one counter, oldest first. */
export interface OwnCalls {
  add(call: OwnCall): void;
  answered(at: number, kind: CallKind, now: number): void;
  /** Takes back a call that turned out to count elsewhere. */
  remove(at: number, kind: CallKind): OwnCall | undefined;
  /** Forgets what neither a window of this length nor an answer can refer to any more. */
  prune(now: number, windowMs: number): void;
  unanswered(): number;
  /** Other calls that were in flight while an answered one was. */
  overlapping(at: number, answeredAt: number): number;
  /** Calls from that moment on, and those that were in flight then. */
  since(at: number): number;
  last(): number;
  all(): readonly OwnCall[];
}

/** Answered calls are remembered for two windows and this time. */
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

/** A window whose first call is not answered is held open for two round trips and this time longer. */
const UNANSWERED_MARGIN_MS = 500;

/** The first answers in the window from which the kind was learnt. */
export interface FixedStart {
  startedAt: number;
  resetAt: number;
  used: number;
}

export interface FixedCounter extends Counter {
  /** Starts over inside a window that is under way. */
  adopt(start: FixedStart): void;
  /** True while that call opens a window and is not answered. */
  isOpening(sentAt: number): boolean;
  /** A window began with less than it should have: the counter is no fixed window. */
  isRefuted(): boolean;
}

/** Windows of `windowMs`, each anchored at its first call, with `n` calls each. */
export function createFixedCounter(rule: Rule): FixedCounter {
  let resetAt = -Infinity;
  let startedAt = -Infinity;
  let used = 0;
  /** The start of the call that opened the window; undefined once that call is answered. */
  let openedAt: number | undefined;
  /** A window was seen to begin with all its calls although the one before had been used. */
  let proven = false;
  let refuted = false;

  function credit(at: number): number {
    if (at >= resetAt) return proven ? rule.limit : 1;
    return openedAt !== undefined && !proven ? 0 : rule.limit - used;
  }

  /** Judges the answer to the call that opened a window. */
  function judge({ kind, sentAt, remaining, inFlight }: Reading): void {
    if (remaining < rule.limit - 1 - inFlight) refuted = true;
    // Only a call of the same kind proves it: the others may have a counter of their own.
    const isBefore = (call: OwnCall) => call.kind === kind && call.at < sentAt && call.at >= sentAt - rule.windowMs;
    const before = rule.calls.all().some((call) => isBefore(call) && call.answeredAt < Infinity);
    if (remaining === rule.limit - 1 && inFlight === 0 && before) proven = true;
  }

  function heard(reading: Reading): void {
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
    heard,
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
      // The call itself is among the unanswered ones.
      used = rule.calls.unanswered();
      resetAt = now + rule.windowMs + 2 * rule.tripMs + UNANSWERED_MARGIN_MS;
    },
    refused(until) {
      // No refusal of this window ends before the window does: another limit was met, such as one shared with others.
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
  /** Credit with its fraction: how far the next call is. */
  level(at: number): number;
}

/** A well filled bucket is spent within about this time. */
const SPENDING_MS = 2_000;

/** A bucket `n` deep from which one call drains every `windowMs / n`; the reset header says when it is empty. */
export function createLeakyCounter(rule: Rule): LeakyCounter {
  /** The moment at which the counter has all its calls again. */
  let fullAt = -Infinity;
  const spacing = () => toSpacing(rule);
  const level = (at: number) => rule.limit - Math.max(0, fullAt - at) / spacing();

  return {
    level,
    credit: (at) => Math.floor(level(at)),
    sent(now) {
      fullAt = Math.max(fullAt, now) + spacing();
    },
    heard({ resetUntil, inFlight }) {
      fullAt = resetUntil + inFlight * spacing();
    },
    refused(until) {
      fullAt = Math.max(fullAt, until + (rule.limit - 1) * spacing());
    },
    // Spends the bank besides what drains: quickly while it is well filled, at the rate of the drain in the end.
    gap: (now) => 1 / (1 / spacing() + Math.max(0, level(now) - 1.5) / SPENDING_MS),
    returns: () => Array.from({ length: rule.limit }, (_, missing) => fullAt - missing * spacing()),
  };
}

// --- no model ---

/** The least doubt about when a call reached the platform. */
const LEAST_MARGIN_MS = 120;

/**
 * Trusts no model of the counter: counts the own calls of the last window, and believes the headers where they say
 * less. Right for a sliding window, and safe for the others until they are told apart.
 */
export function createLoggedCounter(rule: Rule): Counter {
  /** Calls left by the last headers, until their window ends. */
  let rest = { left: Infinity, until: -Infinity };
  /** A counter that held one call is empty from `from` on as far as calls up to `upTo` go. */
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
    heard({ sentAt, remaining, resetUntil, inFlight }: Reading) {
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
