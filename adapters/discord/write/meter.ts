import type { CallKind, CallResult } from "../../../src/port/pace.ts";
import {
  type Counter,
  createFixedCounter,
  createLeakyCounter,
  createLoggedCounter,
  createOwnCalls,
  type OwnCall,
  type Reading,
  type Rule,
  SAME_RESET_MS,
  toSpacing,
} from "./counters.ts";

/** The knowledge of one meter that another may start with; a start that is wrong is corrected by the answers. */
export interface Learnt {
  mode: CounterMode;
  /** Calls per window. */
  limit: number;
  windowMs: number;
}

/** The window that public evidence reports most often. */
const USUAL_WINDOW_MS = 5_000;
/** The start before the first answer: the counter that public evidence reports most often. */
export const UNLEARNT: Learnt = { mode: "unknown", limit: 5, windowMs: USUAL_WINDOW_MS };

/** Keeps within one counter whose kind it learns from the headers of the answers. */
export interface Meter {
  credit(at: number): number;
  creditAt(needs: number, from: number): number;
  gap(now: number): number;
  isRich(at: number): boolean;
  sent(kind: CallKind, now: number): void;
  done(kind: CallKind, sentAt: number, answer: CallResult, now: number): void;
  /** Counts a call made elsewhere, or gives one away. */
  add(call: OwnCall): void;
  remove(kind: CallKind, sentAt: number): OwnCall | undefined;
  calls(): readonly OwnCall[];
  learnt(): Learnt;
  /** No call starts before this moment. */
  blockedUntil(): number;
  keepUntil(): number;
}

/** A quiet meter is kept for this time. */
const KEPT_MS = 60_000;
/** Added to a moment of return so that a question about it is answered after it. */
const JUST_AFTER_MS = 1e-3;

export function createMeter(start: Learnt, blocked = -Infinity): Meter {
  const rule: Rule = { limit: start.limit, windowMs: start.windowMs, tripMs: 0, calls: createOwnCalls() };
  const model = createCounterModel(rule, start.mode);
  let blockedUntil = blocked;

  function credit(at: number): number {
    return at < blockedUntil ? 0 : Math.max(0, model.counter().credit(at));
  }

  function creditAt(needs: number, from: number): number {
    const returns = model.counter().returns();
    const moments = [blockedUntil, ...returns.map((at) => at + JUST_AFTER_MS)].filter((at) => at > from);
    return [from, ...moments.sort((a, b) => a - b)].find((at) => credit(at) >= needs) ?? Infinity;
  }

  function learnt(): Learnt {
    const mode = model.mode();
    // A count that fits no model may come from somebody else's call: other channels look for themselves.
    return { mode: mode === "sliding" ? "unknown" : mode, limit: rule.limit, windowMs: rule.windowMs };
  }

  return {
    credit,
    creditAt,
    gap: (now) => Math.max(model.planned().gap(now), 0.1 * toSpacing(rule)),
    isRich: (at) => credit(at) >= 0.6 * rule.limit,
    sent(kind, now) {
      rule.calls.prune(now, rule.windowMs);
      rule.calls.add({ at: now, answeredAt: Infinity, kind });
      model.sent(now);
    },
    done(kind, sentAt, answer, answeredAt) {
      rule.calls.answered(sentAt, kind, answeredAt);
      const tripMs = answeredAt - sentAt;
      rule.tripMs = Math.max(tripMs, 0.8 * rule.tripMs + 0.2 * tripMs);
      if (!answer.ok && answer.retryAfterMs !== undefined) {
        blockedUntil = Math.max(blockedUntil, answeredAt + answer.retryAfterMs);
        model.refused(blockedUntil);
      }
      if (!answer.ok || answer.budget === undefined) return model.unheard(sentAt);
      const { limit, remaining, resetAfterMs: resetMs } = answer.budget;
      const [resetFrom, resetUntil] = [sentAt + resetMs, answeredAt + resetMs];
      const inFlight = rule.calls.overlapping(sentAt, answeredAt);
      model.heard({ kind, sentAt, answeredAt, resetMs, remaining, resetFrom, resetUntil, inFlight }, limit);
    },
    add: (call) => rule.calls.add(call),
    remove: (kind, sentAt) => rule.calls.remove(sentAt, kind),
    calls: () => rule.calls.all(),
    learnt,
    blockedUntil: () => blockedUntil,
    keepUntil: () => Math.max(rule.calls.last() + KEPT_MS, blockedUntil),
  };
}

// --- which kind of counter it is ---

/** `unknown` until two answers tell the kinds apart; `sliding` when no model fits, for good. */
export type CounterMode = "unknown" | "sliding" | "fixed" | "leaky";

/** The model of a counter, chosen and corrected by what its answers say. Owns the rule's numbers. */
export interface CounterModel {
  mode(): CounterMode;
  /** Counts the credit. */
  counter(): Counter;
  /** Plans the calls: before the kind is sure, it may be the likelier one. */
  planned(): Counter;
  sent(now: number): void;
  /** An answer, after its call was marked as answered. */
  heard(reading: Reading, limit: number): void;
  /** An answer without headers. */
  unheard(sentAt: number): void;
  /** A 429 that ends at `until`. */
  refused(until: number): void;
}

export function createCounterModel(rule: Rule, start: CounterMode): CounterModel {
  const logged = createLoggedCounter(rule);
  const leaky = createLeakyCounter(rule);
  const fixed = createFixedCounter(rule);
  let mode = start;
  let isPlannedLeaky = false;
  let previous: ReferenceReading | undefined;
  /** Answers since the last moment without a call in flight, and how many of them came without headers. */
  let together: Reading[] = [];
  let silent = 0;

  function adjust(limit: number): void {
    if (limit === rule.limit) return;
    rule.windowMs *= limit / rule.limit;
    rule.limit = limit;
    mode = "unknown";
  }

  /** Chooses between the models of the counter by comparing an answer with the one before. */
  function learnKind(reading: Reading): void {
    if (previous === undefined || mode === "sliding") return;
    const { sentAt, spacingMs, remaining, resetMs, resetUntil } = previous;
    const between = rule.calls.all().filter((call) => call.at > sentAt && call.at <= reading.sentAt).length;
    const kind = toKind(reading, previous, between);
    if (kind === undefined || kind === mode) return;
    mode = kind;
    if (kind === "leaky") {
      rule.windowMs = rule.limit * spacingMs;
      return;
    }
    if (remaining === rule.limit - 1) rule.windowMs = resetMs;
    fixed.adopt({
      startedAt: sentAt,
      resetAt: Math.min(reading.resetUntil, resetUntil),
      used: rule.limit - reading.remaining,
    });
  }

  /** The first call on an empty counter shows its spacing: 5 left-but-one with a reset of 1 s is planned as a call per second. */
  function learnSpacing({ remaining, inFlight, resetMs }: Reading): void {
    if (remaining !== rule.limit - 1 || resetMs <= 0) return;
    if (mode === "leaky" && resetMs > toSpacing(rule)) rule.windowMs = resetMs * rule.limit;
    if (mode !== "unknown" || inFlight > 0) return;
    isPlannedLeaky =
      Math.abs(Math.log((resetMs * rule.limit) / USUAL_WINDOW_MS)) < Math.abs(Math.log(resetMs / USUAL_WINDOW_MS));
    if (isPlannedLeaky) rule.windowMs = resetMs * rule.limit;
  }

  /** More calls are in the counter than a leaky one would still hold. */
  function contradictsLeaky({ remaining, resetMs, inFlight }: Reading): boolean {
    return inFlight === 0 && resetMs / toSpacing(rule) + 0.5 < rule.limit - remaining - 1;
  }

  /** With nothing in flight, the answers of calls that were made together are no longer in doubt about each other. */
  function settle(): void {
    if (rule.calls.unanswered() > 0) return;
    if (together.length > 1) {
      const settled = toSettled(together, silent);
      if (silent === 0) previous = toReference(settled, rule.limit);
      logged.heard(settled);
      leaky.heard(settled);
    }
    together = [];
    silent = 0;
  }

  function counter(): Counter {
    if (mode === "fixed") return fixed;
    return mode === "leaky" ? leaky : logged;
  }

  return {
    mode: () => mode,
    counter,
    planned: () => (mode === "unknown" && isPlannedLeaky ? leaky : counter()),
    sent(now) {
      logged.sent(now);
      leaky.sent(now);
      if (mode === "fixed") fixed.sent(now);
    },
    heard(reading, limit) {
      adjust(limit);
      learnKind(reading);
      learnSpacing(reading);
      if (reading.inFlight === 0) previous = toReference(reading, rule.limit);
      if (mode === "leaky" && contradictsLeaky(reading)) mode = "unknown";
      logged.heard(reading);
      leaky.heard(reading);
      if (mode === "fixed") fixed.heard(reading);
      if (mode === "fixed" && fixed.isRefuted()) mode = "sliding";
      together.push(reading);
      settle();
    },
    unheard(sentAt) {
      // The start of this window is unknown: count the own calls until two answers tell again.
      if (mode === "fixed" && fixed.isOpening(sentAt)) mode = "unknown";
      // The call may have counted or not: the next answer cannot be compared with one before it.
      previous = undefined;
      silent += 1;
      settle();
    },
    refused(until) {
      for (const one of [fixed, leaky, logged]) one.refused(until);
    },
  };
}

/** Joins the readings of calls made together: the platform had counted all of them when it answered the last one. */
function toSettled(together: readonly Reading[], silent: number): Reading {
  const least = together.reduce((a, b) => (b.remaining < a.remaining ? b : a));
  return {
    ...least,
    sentAt: Math.max(...together.map(({ sentAt }) => sentAt)),
    resetUntil: Math.max(...together.map(({ resetUntil }) => resetUntil)),
    inFlight: silent,
  };
}

/** An answer without other calls in flight, for the comparison with the next one. */
export interface ReferenceReading extends Reading {
  /** Time per call if the counter is leaky, milliseconds. */
  spacingMs: number;
}

export function toReference(reading: Reading, limit: number): ReferenceReading {
  return { ...reading, spacingMs: reading.resetMs / Math.max(1, limit - reading.remaining) };
}

/**
 * Tells from two answers how the platform counts: the reset of a fixed window stands still, that of a leaky counter
 * moves on by `spacingMs` with each of the `between` calls. Undefined when both fit, or neither, or the answers cannot be compared.
 */
export function toKind(reading: Reading, reference: ReferenceReading, between: number): "fixed" | "leaky" | undefined {
  if (reading.inFlight > 0 || reading.sentAt >= reference.resetFrom) return undefined;
  if (reading.remaining > reference.remaining) return undefined;
  const fitsFixed = overlaps(reading, reference, 0);
  const fitsLeaky = overlaps(reading, reference, between * reference.spacingMs);
  if (fitsFixed === fitsLeaky) return undefined;
  return fitsFixed ? "fixed" : "leaky";
}

function overlaps(a: Reading, b: Reading, shift: number): boolean {
  return a.resetFrom <= b.resetUntil + shift + SAME_RESET_MS && a.resetUntil >= b.resetFrom + shift - SAME_RESET_MS;
}
