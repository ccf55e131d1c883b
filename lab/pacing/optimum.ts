import type { Arrivals } from "./scenarios.ts";

/** Time between the moments at which the optimum may send. */
const GRID_MS = 50;
/** Gaps longer than this are never worth their wait while there are calls. */
const LONGEST_GAP_MS = 6_000;

/** The memory of a limit between calls: `spend` gives the next state, undefined when the call is not allowed. */
export interface OptimumLimit {
  initial: number;
  states: number;
  /** The state after a call `steps` grid steps after the last one, which left `state`. */
  spend(state: number, steps: number): number | undefined;
}

/** Windows of `windowMs` anchored at their first call, `n` calls each. */
export function fixedLimit(n: number, windowMs: number): OptimumLimit {
  const window = Math.round(windowMs / GRID_MS);
  // Steps since the window began, and calls made in it.
  return {
    initial: 1,
    states: window * (n + 1),
    spend(state, steps) {
      const age = Math.floor(state / (n + 1)) + steps;
      if (age >= window) return 1;
      const used = (state % (n + 1)) + 1;
      return used > n ? undefined : age * (n + 1) + used;
    },
  };
}

/** A bucket `n` deep that drains one call every `windowMs / n`; the first call is a post with a bucket of its own. */
export function leakyLimit(n: number, windowMs: number): OptimumLimit {
  const q = Math.round(windowMs / n / GRID_MS);
  return {
    initial: 0,
    states: n * q + 1,
    spend(state, steps) {
      const level = Math.max(0, state - steps) + q;
      return level > n * q ? undefined : level;
    },
  };
}

/** At most `n` calls in all: what a sliding limit is to a reply shorter than its window. */
export function countLimit(n: number): OptimumLimit {
  return { initial: 1, states: n + 1, spend: (state) => (state < n ? state + 1 : undefined) };
}

/**
 * The least mean lag of one reply, milliseconds, whose arrivals are known beforehand, with constant round trips and as many calls in
 * flight as the limit allows: a dynamic programme over the moments of the calls and the state of the limit.
 */
export function findOptimum(arrivals: Arrivals, limit: OptimumLimit, tripMs: number): number {
  const first = arrivals[0] ?? 0;
  const end = Math.ceil(((arrivals.at(-1) ?? 0) - first) / GRID_MS);
  const moments = end + Math.ceil(LONGEST_GAP_MS / GRID_MS) + 1;
  const { counts, sums } = toPrefixes(arrivals, first, moments);
  const longest = Math.ceil(LONGEST_GAP_MS / GRID_MS);
  /** Cost of showing at `to` all that came after `from`. */
  const cost = (from: number, to: number) => {
    const tokens = (counts[to] ?? 0) - (counts[from] ?? 0);
    return tokens * (first + to * GRID_MS + tripMs / 2) - ((sums[to] ?? 0) - (sums[from] ?? 0));
  };

  const best = Array.from({ length: moments }, () => new Float64Array(limit.states).fill(Infinity));
  let optimum = Infinity;
  for (let at = 0; at < moments; at++) {
    const states = best[at];
    if (states === undefined) break;
    if (at <= longest && (counts[at] ?? 0) > 0) {
      const opening = (counts[at] ?? 0) * (first + at * GRID_MS + tripMs / 2) - (sums[at] ?? 0);
      states[limit.initial] = Math.min(states[limit.initial] ?? Infinity, opening);
    }
    for (const [state, spent] of states.entries()) {
      if (spent >= optimum) continue;
      if (at >= end) optimum = Math.min(optimum, spent);
      for (let to = at + 1; to < Math.min(moments, at + longest); to++) {
        const next = limit.spend(state, to - at);
        const target = best[to];
        if (next === undefined || target === undefined) continue;
        target[next] = Math.min(target[next] ?? Infinity, spent + cost(at, to));
      }
    }
  }
  return optimum / arrivals.length;
}

/** How many tokens have arrived at each moment, and the sum of their times. */
function toPrefixes(arrivals: Arrivals, first: number, moments: number): { counts: number[]; sums: number[] } {
  const counts: number[] = [];
  const sums: number[] = [];
  let index = 0;
  let sum = 0;
  for (let at = 0; at < moments; at++) {
    for (; index < arrivals.length && (arrivals[index] ?? Infinity) <= first + at * GRID_MS + 1e-6; index++) {
      sum += arrivals[index] ?? 0;
    }
    counts.push(index);
    sums.push(sum);
  }
  return { counts, sums };
}
