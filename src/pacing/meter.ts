import type { Answer, CallKind } from "./call.ts";
import type { Rule } from "./counter.ts";
import { toSpacing } from "./counter.ts";
import { type CounterMode, createCounterModel, USUAL_WINDOW } from "./counter-model.ts";
import type { OwnCall } from "./own-calls.ts";
import { createOwnCalls } from "./own-calls.ts";

/** What a meter has learnt and another one may start with; a start that is wrong is corrected by the answers. */
export interface Learnt {
  mode: CounterMode;
  /** Calls per window. */
  n: number;
  /** Window, seconds. */
  w: number;
}

/** What public evidence says most often, for the time before the first answer. */
export const UNLEARNT: Learnt = { mode: "unknown", n: 5, w: USUAL_WINDOW };

/** Keeps within one counter whose kind it learns from the headers of the answers. */
export interface Meter {
  credit(at: number): number;
  creditAt(needs: number, from: number): number;
  gap(now: number): number;
  isRich(at: number): boolean;
  sent(kind: CallKind, now: number): void;
  done(kind: CallKind, sentAt: number, answer: Answer, now: number): void;
  /** Takes over a call made elsewhere, or gives one away. */
  add(call: OwnCall): void;
  remove(kind: CallKind, sentAt: number): OwnCall | undefined;
  calls(): readonly OwnCall[];
  learnt(): Learnt;
  /** Nothing starts before. */
  blockedUntil(): number;
  keepUntil(): number;
}

/** Seconds that a quiet meter is worth keeping. */
const KEPT = 60;
/** Added to a moment of return so that a question about it is answered after it, seconds. */
const JUST_AFTER = 1e-6;

export function createMeter(start: Learnt, blocked = -Infinity): Meter {
  const rule: Rule = { n: start.n, w: start.w, rtt: 0, calls: createOwnCalls() };
  const model = createCounterModel(rule, start.mode);
  let blockedUntil = blocked;

  function credit(at: number): number {
    return at < blockedUntil ? 0 : Math.max(0, model.counter().credit(at));
  }

  function creditAt(needs: number, from: number): number {
    const turns = model.counter().turns();
    const moments = [blockedUntil, ...turns.map((at) => at + JUST_AFTER)].filter((at) => at > from);
    return [from, ...moments.sort((a, b) => a - b)].find((at) => credit(at) >= needs) ?? Infinity;
  }

  function learnt(): Learnt {
    const mode = model.mode();
    // What fits no model may have been somebody else's call: other channels look for themselves.
    return { mode: mode === "sliding" ? "unknown" : mode, n: rule.n, w: rule.w };
  }

  return {
    credit,
    creditAt,
    gap: (now) => Math.max(model.planned().gap(now), 0.1 * toSpacing(rule)),
    isRich: (at) => credit(at) >= 0.6 * rule.n,
    sent(kind, now) {
      rule.calls.prune(now, rule.w);
      rule.calls.add({ at: now, answeredAt: Infinity, kind });
      model.sent(now);
    },
    done(kind, s, answer, a) {
      rule.calls.answered(s, kind, a);
      rule.rtt = Math.max(a - s, 0.8 * rule.rtt + 0.2 * (a - s));
      if (!answer.ok && answer.retryAfter !== undefined) {
        blockedUntil = Math.max(blockedUntil, a + answer.retryAfter);
        model.refused(blockedUntil);
      }
      if (!answer.ok || answer.budget === undefined) return model.unheard(s);
      const { limit, remaining, resetAfter: reset } = answer.budget;
      const over = rule.calls.overlapping(s, a);
      model.heard({ kind, s, a, reset, remaining, lo: s + reset, hi: a + reset, over }, limit);
    },
    add: (call) => rule.calls.add(call),
    remove: (kind, sentAt) => rule.calls.remove(sentAt, kind),
    calls: () => rule.calls.all(),
    learnt,
    blockedUntil: () => blockedUntil,
    keepUntil: () => Math.max(rule.calls.last() + KEPT, blockedUntil),
  };
}
