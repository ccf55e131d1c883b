import type { Counter, Rule, Seen } from "./counter.ts";
import { toSpacing } from "./counter.ts";
import { SAME_RESET } from "./counter-kind.ts";
import type { OwnCall } from "./own-calls.ts";

/** Seconds beyond two round trips that a window is held open whose first call is not answered. */
const UNANSWERED_MARGIN = 0.5;

/** The first answers in the window from which the kind was learnt. */
export interface FixedStart {
  winStart: number;
  resetAt: number;
  used: number;
}

export interface FixedCounter extends Counter {
  /** Starts over inside a window that is under way. */
  adopt(start: FixedStart): void;
  /** Whether that call opens a window and is not answered. */
  isOpening(sentAt: number): boolean;
  /** A window began with less than it should have: the counter is no fixed window. */
  isRefuted(): boolean;
}

/** Windows of `w` seconds, each anchored at its first call, with `n` calls each. */
export function createFixedCounter(rule: Rule): FixedCounter {
  let resetAt = -Infinity;
  let winStart = -Infinity;
  let used = 0;
  /** The call that opened the window, until it is answered. */
  let turn: number | undefined;
  /** A window was seen to begin with all its calls although the one before had been used. */
  let proven = false;
  let refuted = false;

  function credit(at: number): number {
    if (at >= resetAt) return proven ? rule.n : 1;
    return turn !== undefined && !proven ? 0 : rule.n - used;
  }

  /** Judges the answer to the call that opened a window. */
  function judge({ kind, s, remaining, over }: Seen): void {
    if (remaining < rule.n - 1 - over) refuted = true;
    // Only a call of the same kind proves it: the others may have a counter of their own.
    const isBefore = (call: OwnCall) => call.kind === kind && call.at < s && call.at >= s - rule.w;
    const before = rule.calls.all().some((call) => isBefore(call) && call.answeredAt < Infinity);
    if (remaining === rule.n - 1 && over === 0 && before) proven = true;
  }

  function heard(seen: Seen): void {
    const { s, lo, hi, remaining } = seen;
    if (s < winStart) return;
    const isOpening = s === turn;
    if (isOpening) turn = undefined;
    const isLate = lo > resetAt + SAME_RESET;
    if (isLate) {
      winStart = s;
      resetAt = hi;
      used = Math.max(rule.calls.since(s), rule.n - remaining);
    } else {
      resetAt = Math.min(resetAt, hi);
      used = Math.max(used, rule.n - remaining);
    }
    if (isOpening || isLate) judge(seen);
  }

  return {
    credit,
    heard,
    adopt(start) {
      ({ winStart, resetAt, used } = start);
      turn = undefined;
      proven = false;
      refuted = false;
    },
    isOpening: (sentAt) => sentAt === turn,
    isRefuted: () => refuted,
    sent(now) {
      if (now < resetAt) {
        used += 1;
        return;
      }
      winStart = now;
      turn = now;
      // The call itself is among the unanswered ones.
      used = rule.calls.unanswered();
      resetAt = now + rule.w + 2 * rule.rtt + UNANSWERED_MARGIN;
    },
    refused(until) {
      // No refusal of this window ends before the window does: another limit was met, such as one shared with others.
      if (turn === undefined && until < resetAt) return;
      used = rule.n;
      resetAt = until;
      proven = false;
      turn = undefined;
    },
    gap(now) {
      if (now >= resetAt) return 0.35 * toSpacing(rule);
      return (resetAt - rule.calls.last()) / (Math.max(0, rule.n - used) + 1);
    },
    turns: () => [resetAt],
  };
}
