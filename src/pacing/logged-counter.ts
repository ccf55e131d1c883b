import type { Counter, Rule, Seen } from "./counter.ts";
import { toSpacing } from "./counter.ts";

/** The least doubt about when a call reached the platform, seconds. */
const LEAST_MARGIN = 0.12;

/**
 * Trusts no model of the counter: counts the own calls of the last window, and believes the headers where they say
 * less. Right for a sliding window, and safe for the others until they are told apart.
 */
export function createLoggedCounter(rule: Rule): Counter {
  /** What the last headers left, until their window ends. */
  let rest = { left: Infinity, until: -Infinity };
  /** A counter that held one call is empty from `from` on as far as calls up to `upTo` go. */
  let empty = { from: Infinity, upTo: -Infinity };

  const span = () => rule.w + Math.max(LEAST_MARGIN, rule.rtt);
  const counted = (at: number) =>
    rule.calls.all().filter((call) => call.at > at - span() && !(at >= empty.from && call.at <= empty.upTo));

  function credit(at: number): number {
    const free = rule.n - counted(at).length;
    return at < rest.until ? Math.min(free, rest.left) : free;
  }

  return {
    credit,
    sent() {
      rest.left -= 1;
    },
    heard({ s, remaining, hi, over }: Seen) {
      rest = { left: remaining - over, until: hi };
      if (remaining === rule.n - 1 && over === 0) empty = { from: hi, upTo: s };
    },
    refused() {},
    gap(now) {
      const oldest = counted(now)[0];
      if (oldest === undefined) return 0.35 * toSpacing(rule);
      return (oldest.at + span() - rule.calls.last()) / (Math.max(0, credit(now)) + 1);
    },
    turns: () => [...rule.calls.all().map((call) => call.at + span()), rest.until, empty.from],
  };
}
