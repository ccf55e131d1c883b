import type { Counter, Rule } from "./counter.ts";
import { toSpacing } from "./counter.ts";

export interface LeakyCounter extends Counter {
  /** Credit with its fraction: how far the next call is. */
  level(at: number): number;
}

/** A bucket `n` deep from which one call drains every `w / n` seconds; the reset header says when it is empty. */
export function createLeakyCounter(rule: Rule): LeakyCounter {
  /** When the counter is all free again. */
  let full = -Infinity;
  const q = () => toSpacing(rule);
  const level = (at: number) => rule.n - Math.max(0, full - at) / q();

  return {
    level,
    credit: (at) => Math.floor(level(at)),
    sent(now) {
      full = Math.max(full, now) + q();
    },
    heard({ hi, over }) {
      full = hi + over * q();
    },
    refused(until) {
      full = Math.max(full, until + (rule.n - 1) * q());
    },
    // What drains while the bank is used up: quick while it is well filled, at the rate of the drain in the end.
    gap: (now) => 1 / (1 / q() + Math.max(0, level(now) - 1.5) / 2),
    turns: () => Array.from({ length: rule.n }, (_, missing) => full - missing * q()),
  };
}
