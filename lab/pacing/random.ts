/** A seeded random generator: the same seed gives the same run. */
export interface Random {
  /** Uniform from 0 (included) to 1 (excluded). */
  next(): number;
  between(min: number, max: number): number;
  pick<T>(items: readonly T[]): T;
  /** A sample from the standard normal distribution. */
  normal(): number;
  /** A waiting time of a Poisson process. */
  wait(mean: number): number;
}

export function createRandom(seed: number): Random {
  let state = (seed * 2654435761 + 12345) >>> 0;

  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  return {
    next,
    between: (min, max) => min + (max - min) * next(),
    pick(items) {
      const item = items[Math.floor(next() * items.length)];
      if (item === undefined) throw new Error("Cannot pick from an empty list.");
      return item;
    },
    normal: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
    wait: (mean) => -mean * Math.log(1 - next()),
  };
}

/** A round trip in milliseconds, from a log-normal distribution with this median. */
export function toRoundTrip(random: Random, medianMs: number): number {
  return medianMs * Math.exp(0.35 * random.normal());
}
