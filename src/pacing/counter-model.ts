import type { Counter, Rule, Seen } from "./counter.ts";
import { toSpacing } from "./counter.ts";
import type { Reference } from "./counter-kind.ts";
import { toKind, toReference } from "./counter-kind.ts";
import { createFixedCounter } from "./fixed-counter.ts";
import { createLeakyCounter } from "./leaky-counter.ts";
import { createLoggedCounter } from "./logged-counter.ts";

/** `unknown` until two answers tell the kinds apart; `sliding` when no model fits, for good. */
export type CounterMode = "unknown" | "sliding" | "fixed" | "leaky";

/** The window that public evidence reports most often, seconds. */
export const USUAL_WINDOW = 5;

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
    rule.w *= limit / rule.n;
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
      rule.w = rule.n * q;
      return;
    }
    if (remaining === rule.n - 1) rule.w = reset;
    fixed.adopt({ winStart: s, resetAt: Math.min(seen.hi, hi), used: rule.n - seen.remaining });
  }

  /** The first call on an empty counter shows its spacing: 5 left-but-one with a reset of 1 s is planned as a call per second. */
  function learnSpacing({ remaining, over, reset }: Seen): void {
    if (remaining !== rule.n - 1 || reset <= 0) return;
    if (mode === "leaky" && reset > toSpacing(rule)) rule.w = reset * rule.n;
    if (mode !== "unknown" || over > 0) return;
    isPlannedLeaky = Math.abs(Math.log((reset * rule.n) / USUAL_WINDOW)) < Math.abs(Math.log(reset / USUAL_WINDOW));
    if (isPlannedLeaky) rule.w = reset * rule.n;
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
