import type { Arrivals } from "./scenarios.ts";

/** The optimum sends only at multiples of this time. */
const GRID_MS = 50;
/** While calls are left, waiting longer than this never helps. */
const LONGEST_GAP_MS = 6_000;

/** A limit's state between calls. */
export interface OptimumLimit {
  initial: number;
  states: number;
  /**
   * Returns the state after a call that starts `steps` grid steps after the previous call, or undefined if the limit
   * forbids the call. `state` is the state after the previous call.
   */
  spend(state: number, steps: number): number | undefined;
}

/** A limit of `n` calls in windows of `windowMs`. A window starts with its first call. */
export function fixedLimit(n: number, windowMs: number): OptimumLimit {
  const window = Math.round(windowMs / GRID_MS);
  // The state holds the steps since the window started and the number of calls in it.
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

/**
 * A bucket of depth `n` that drains one call every `windowMs / n`. The first call is a post, and posts have their own
 * bucket.
 */
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

/** Allows `n` calls in total. A sliding limit works like this for a reply that is shorter than the window. */
export function countLimit(n: number): OptimumLimit {
  return { initial: 1, states: n + 1, spend: (state) => (state < n ? state + 1 : undefined) };
}

/**
 * Returns the lowest possible mean lag of a reply in milliseconds, if all arrivals are known beforehand. Round trips
 * are constant, and only the limit restricts calls in flight. Uses dynamic programming over the times of the calls and
 * the state of the limit.
 */
export function findOptimum(arrivals: Arrivals, limit: OptimumLimit, tripMs: number): number {
  const first = arrivals[0] ?? 0;
  const end = Math.ceil(((arrivals.at(-1) ?? 0) - first) / GRID_MS);
  const moments = end + Math.ceil(LONGEST_GAP_MS / GRID_MS) + 1;
  const { counts, sums } = toPrefixes(arrivals, first, moments);
  const longest = Math.ceil(LONGEST_GAP_MS / GRID_MS);
  /** Sums up the lag of all tokens that arrived after `from` and are shown at `to`. */
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

/** Returns, for each grid step, how many tokens have arrived and the sum of their arrival times. */
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
