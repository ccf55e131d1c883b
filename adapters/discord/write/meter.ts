import type { CallKind, CallResult } from "../../../src/port/pace.ts";
import {
  type Counter,
  createFixedCounter,
  createLeakyCounter,
  createLoggedCounter,
  createOwnCalls,
  type OwnCall,
  type Rule,
  SAME_RESET_MS,
  type Seen,
  toSpacing,
} from "./counters.ts";

/** What a meter has learnt and another one may start with; a start that is wrong is corrected by the answers. */
export interface Learnt {
  mode: CounterMode;
  /** Calls per window. */
  n: number;
  windowMs: number;
}

/** The window that public evidence reports most often. */
const USUAL_WINDOW_MS = 5_000;
/** What public evidence says most often, for the time before the first answer. */
export const UNLEARNT: Learnt = { mode: "unknown", n: 5, windowMs: USUAL_WINDOW_MS };

/** Keeps within one counter whose kind it learns from the headers of the answers. */
export interface Meter {
  credit(at: number): number;
  creditAt(needs: number, from: number): number;
  gap(now: number): number;
  isRich(at: number): boolean;
  sent(kind: CallKind, now: number): void;
  done(kind: CallKind, sentAt: number, answer: CallResult, now: number): void;
  /** Takes over a call made elsewhere, or gives one away. */
  add(call: OwnCall): void;
  remove(kind: CallKind, sentAt: number): OwnCall | undefined;
  calls(): readonly OwnCall[];
  learnt(): Learnt;
  /** Nothing starts before. */
  blockedUntil(): number;
  keepUntil(): number;
}

/** A quiet meter is worth keeping for so long. */
const KEPT_MS = 60_000;
/** Added to a moment of return so that a question about it is answered after it. */
const JUST_AFTER_MS = 1e-3;

export function createMeter(start: Learnt, blocked = -Infinity): Meter {
  const rule: Rule = { n: start.n, windowMs: start.windowMs, tripMs: 0, calls: createOwnCalls() };
  const model = createCounterModel(rule, start.mode);
  let blockedUntil = blocked;

  function credit(at: number): number {
    return at < blockedUntil ? 0 : Math.max(0, model.counter().credit(at));
  }

  function creditAt(needs: number, from: number): number {
    const turns = model.counter().turns();
    const moments = [blockedUntil, ...turns.map((at) => at + JUST_AFTER_MS)].filter((at) => at > from);
    return [from, ...moments.sort((a, b) => a - b)].find((at) => credit(at) >= needs) ?? Infinity;
  }

  function learnt(): Learnt {
    const mode = model.mode();
    // A count that fits no model may come from somebody else's call: other channels look for themselves.
    return { mode: mode === "sliding" ? "unknown" : mode, n: rule.n, windowMs: rule.windowMs };
  }

  return {
    credit,
    creditAt,
    gap: (now) => Math.max(model.planned().gap(now), 0.1 * toSpacing(rule)),
    isRich: (at) => credit(at) >= 0.6 * rule.n,
    sent(kind, now) {
      rule.calls.prune(now, rule.windowMs);
      rule.calls.add({ at: now, answeredAt: Infinity, kind });
      model.sent(now);
    },
    done(kind, s, answer, a) {
      rule.calls.answered(s, kind, a);
      rule.tripMs = Math.max(a - s, 0.8 * rule.tripMs + 0.2 * (a - s));
      if (!answer.ok && answer.retryAfterMs !== undefined) {
        blockedUntil = Math.max(blockedUntil, a + answer.retryAfterMs);
        model.refused(blockedUntil);
      }
      if (!answer.ok || answer.budget === undefined) return model.unheard(s);
      const { limit, remaining, resetAfterMs: reset } = answer.budget;
      const over = rule.calls.overlapping(s, a);
      model.heard({ kind, s, a, reset, remaining, lo: s + reset, hi: a + reset, over }, limit);
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
  /** What credit is counted with. */
  counter(): Counter;
  /** What calls are planned with: before the kind is sure, it may be the likelier one. */
  planned(): Counter;
  sent(now: number): void;
  /** An answer, after its call was marked as answered. */
  heard(seen: Seen, limit: number): void;
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
  let previous: Reference | undefined;
  /** Answers since the last moment without a call in flight, and how many of them came without headers. */
  let together: Seen[] = [];
  let silent = 0;

  function adjust(limit: number): void {
    if (limit === rule.n) return;
    rule.windowMs *= limit / rule.n;
    rule.n = limit;
    mode = "unknown";
  }

  /** Chooses between the models of the counter by comparing an answer with the one before. */
  function learnKind(seen: Seen): void {
    if (previous === undefined || mode === "sliding") return;
    const { s, q, remaining, reset, hi } = previous;
    const between = rule.calls.all().filter((call) => call.at > s && call.at <= seen.s).length;
    const kind = toKind(seen, previous, between);
    if (kind === undefined || kind === mode) return;
    mode = kind;
    if (kind === "leaky") {
      rule.windowMs = rule.n * q;
      return;
    }
    if (remaining === rule.n - 1) rule.windowMs = reset;
    fixed.adopt({ winStart: s, resetAt: Math.min(seen.hi, hi), used: rule.n - seen.remaining });
  }

  /** The first call on an empty counter shows its spacing: 5 left-but-one with a reset of 1 s is planned as a call per second. */
  function learnSpacing({ remaining, over, reset }: Seen): void {
    if (remaining !== rule.n - 1 || reset <= 0) return;
    if (mode === "leaky" && reset > toSpacing(rule)) rule.windowMs = reset * rule.n;
    if (mode !== "unknown" || over > 0) return;
    isPlannedLeaky =
      Math.abs(Math.log((reset * rule.n) / USUAL_WINDOW_MS)) < Math.abs(Math.log(reset / USUAL_WINDOW_MS));
    if (isPlannedLeaky) rule.windowMs = reset * rule.n;
  }

  /** More calls are in the counter than a leaky one would still hold. */
  function contradictsLeaky({ remaining, reset, over }: Seen): boolean {
    return over === 0 && reset / toSpacing(rule) + 0.5 < rule.n - remaining - 1;
  }

  /** With nothing in flight, the answers of calls that were made together are no longer in doubt about each other. */
  function settle(): void {
    if (rule.calls.unanswered() > 0) return;
    if (together.length > 1) {
      const settled = toSettled(together, silent);
      if (silent === 0) previous = toReference(settled, rule.n);
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
    heard(seen, limit) {
      adjust(limit);
      learnKind(seen);
      learnSpacing(seen);
      if (seen.over === 0) previous = toReference(seen, rule.n);
      if (mode === "leaky" && contradictsLeaky(seen)) mode = "unknown";
      logged.heard(seen);
      leaky.heard(seen);
      if (mode === "fixed") fixed.heard(seen);
      if (mode === "fixed" && fixed.isRefuted()) mode = "sliding";
      together.push(seen);
      settle();
    },
    unheard(sentAt) {
      // Nobody knows when this window began: count the own calls until two answers tell again.
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

/** What calls made together showed in the end: the platform had counted all of them when it answered the last one. */
function toSettled(together: readonly Seen[], silent: number): Seen {
  const least = together.reduce((a, b) => (b.remaining < a.remaining ? b : a));
  return {
    ...least,
    s: Math.max(...together.map(({ s }) => s)),
    hi: Math.max(...together.map(({ hi }) => hi)),
    over: silent,
  };
}

/** An answer without other calls in flight, for the comparison with the next one. */
export interface Reference extends Seen {
  /** Time per call if the counter is leaky, milliseconds. */
  q: number;
}

export function toReference(seen: Seen, n: number): Reference {
  return { ...seen, q: seen.reset / Math.max(1, n - seen.remaining) };
}

/**
 * Tells from two answers how the platform counts: the reset of a fixed window stands still, that of a leaky counter
 * moves on by `q` with each of the `between` calls. Undefined when both fit, or neither, or the answers cannot be compared.
 */
export function toKind(seen: Seen, reference: Reference, between: number): "fixed" | "leaky" | undefined {
  if (seen.over > 0 || seen.s >= reference.lo || seen.remaining > reference.remaining) return undefined;
  const fitsFixed = overlaps(seen, reference, 0);
  const fitsLeaky = overlaps(seen, reference, between * reference.q);
  if (fitsFixed === fitsLeaky) return undefined;
  return fitsFixed ? "fixed" : "leaky";
}

function overlaps(a: Seen, b: Seen, shift: number): boolean {
  return a.lo <= b.hi + shift + SAME_RESET_MS && a.hi >= b.lo + shift - SAME_RESET_MS;
}
