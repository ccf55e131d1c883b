/** The time a simulator lives in, Unix milliseconds. Tests may move it forward, never back. */
export interface Clock {
  now(): number;
  advance(ms: number): void;
}

/** A clock that runs with the real one and can be ahead of it. */
export function createClock(): Clock {
  let aheadMs = 0;
  return {
    now: () => Date.now() + aheadMs,
    advance(ms) {
      if (!(ms >= 0)) throw new Error(`The clock cannot go back: advance(${ms}).`);
      aheadMs += ms;
    },
  };
}

/** A clock that stands still until it is moved. */
export function createStillClock(startMs = Date.now()): Clock {
  let nowMs = startMs;
  return {
    now: () => nowMs,
    advance(ms) {
      if (!(ms >= 0)) throw new Error(`The clock cannot go back: advance(${ms}).`);
      nowMs += ms;
    },
  };
}
