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

/** The knowledge of one meter. Another meter can start with it, because responses correct a wrong start. */
export interface Learnt {
  mode: CounterMode;
  limit: number;
  windowMs: number;
}

const USUAL_WINDOW_MS = 5_000;
/** Assumed before the first response: the limit that public sources report most often. */
export const UNLEARNT: Learnt = { mode: "unknown", limit: 5, windowMs: USUAL_WINDOW_MS };

export interface Meter {
  credit(at: number): number;
  creditAt(needs: number, from: number): number;
  gap(now: number): number;
  isRich(at: number): boolean;
  sent(kind: CallKind, now: number): void;
  done(kind: CallKind, sentAt: number, answer: CallResult, now: number): void;
  /** Adds a call that another meter counted until now. */
  add(call: OwnCall): void;
  remove(kind: CallKind, sentAt: number): OwnCall | undefined;
  calls(): readonly OwnCall[];
  learnt(): Learnt;
  blockedUntil(): number;
  keepUntil(): number;
}

const KEPT_MS = 60_000;
/** Added to the time of a check, so that the call is available by then. */
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
    // Reports `sliding` as `unknown` to other channels, because another program's calls can look like it.
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
      if (!answer.ok || answer.budget === undefined) return model.observeSilence(sentAt);
      const { limit, remaining, resetAfterMs: resetMs } = answer.budget;
      const [resetFrom, resetUntil] = [sentAt + resetMs, answeredAt + resetMs];
      const inFlight = rule.calls.overlapping(sentAt, answeredAt);
      model.observe({ kind, sentAt, answeredAt, resetMs, remaining, resetFrom, resetUntil, inFlight }, limit);
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

/** `unknown` until two responses show the kind; `sliding` once neither `fixed` nor `leaky` fits. */
export type CounterMode = "unknown" | "sliding" | "fixed" | "leaky";

/** Chooses and corrects the model of a counter with each response. */
export interface CounterModel {
  mode(): CounterMode;
  /** The model that counts the available calls. */
  counter(): Counter;
  /** The model that sets the pace. In the mode `unknown` this is `leaky` if that is likelier, else `counter()`. */
  planned(): Counter;
  sent(now: number): void;
  /** Handles a response, after its call was marked as completed. */
  observe(reading: Reading, limit: number): void;
  observeSilence(sentAt: number): void;
  /** Handles a 429, whose wait ends at `until`. */
  refused(until: number): void;
}

export function createCounterModel(rule: Rule, start: CounterMode): CounterModel {
  const logged = createLoggedCounter(rule);
  const leaky = createLeakyCounter(rule);
  const fixed = createFixedCounter(rule);
  let mode = start;
  let isPlannedLeaky = false;
  let previous: ReferenceReading | undefined;
  /** Responses since the last moment without calls in flight: those with headers, and the number of the others. */
  let together: Reading[] = [];
  let silent = 0;

  function adjust(limit: number): void {
    if (limit === rule.limit) return;
    rule.windowMs *= limit / rule.limit;
    rule.limit = limit;
    mode = "unknown";
  }

  /** Chooses the model of the counter by comparing each response with the previous one. */
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

  /** Learns from the first call on an empty counter: limit 5, 4 left and a reset after 1 s mean one call per second. */
  function learnSpacing({ remaining, inFlight, resetMs }: Reading): void {
    if (remaining !== rule.limit - 1 || resetMs <= 0) return;
    if (mode === "leaky" && resetMs > toSpacing(rule)) rule.windowMs = resetMs * rule.limit;
    if (mode !== "unknown" || inFlight > 0) return;
    isPlannedLeaky =
      Math.abs(Math.log((resetMs * rule.limit) / USUAL_WINDOW_MS)) < Math.abs(Math.log(resetMs / USUAL_WINDOW_MS));
    if (isPlannedLeaky) rule.windowMs = resetMs * rule.limit;
  }

  /** True if the counter has more calls left than a leaky counter would have. */
  function contradictsLeaky({ remaining, resetMs, inFlight }: Reading): boolean {
    return inFlight === 0 && resetMs / toSpacing(rule) + 0.5 < rule.limit - remaining - 1;
  }

  /** Once no call is in flight, merges the responses of concurrent calls into one, for later comparisons. */
  function settle(): void {
    if (rule.calls.unanswered() > 0) return;
    if (together.length > 1) {
      const settled = toSettled(together, silent);
      if (silent === 0) previous = toReference(settled, rule.limit);
      logged.observe(settled);
      leaky.observe(settled);
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
    observe(reading, limit) {
      adjust(limit);
      learnKind(reading);
      learnSpacing(reading);
      if (reading.inFlight === 0) previous = toReference(reading, rule.limit);
      if (mode === "leaky" && contradictsLeaky(reading)) mode = "unknown";
      logged.observe(reading);
      leaky.observe(reading);
      if (mode === "fixed") fixed.observe(reading);
      if (mode === "fixed" && fixed.isRefuted()) mode = "sliding";
      together.push(reading);
      settle();
    },
    observeSilence(sentAt) {
      // This window's start is unknown: counts the bot's own calls until two responses can be compared again.
      if (mode === "fixed" && fixed.isOpening(sentAt)) mode = "unknown";
      // The call may or may not have counted, so the next response cannot be compared with an earlier one.
      previous = undefined;
      silent += 1;
      settle();
    },
    refused(until) {
      for (const one of [fixed, leaky, logged]) one.refused(until);
    },
  };
}

/** Joins concurrent responses. The platform had counted all their calls when it sent the last one. */
function toSettled(together: readonly Reading[], silent: number): Reading {
  const least = together.reduce((a, b) => (b.remaining < a.remaining ? b : a));
  return {
    ...least,
    sentAt: Math.max(...together.map(({ sentAt }) => sentAt)),
    resetUntil: Math.max(...together.map(({ resetUntil }) => resetUntil)),
    inFlight: silent,
  };
}

/** A response that arrived without other calls in flight. The next response is compared with it. */
export interface ReferenceReading extends Reading {
  /** Milliseconds per call if the counter is leaky. */
  spacingMs: number;
}

export function toReference(reading: Reading, limit: number): ReferenceReading {
  return { ...reading, spacingMs: reading.resetMs / Math.max(1, limit - reading.remaining) };
}

/**
 * Finds out from two responses how the platform counts. With a fixed window, both report the same reset time; with a
 * leaky counter, it moves by `spacingMs` per call. Undefined if both kinds or neither fit, or if the responses cannot
 * be compared.
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
