/** The simulator's time in Unix milliseconds. Tests can only move it forward. */
export interface Clock {
  now(): number;
  advance(ms: number): void;
}

/** A clock that runs at normal speed. Tests can move it ahead of real time. */
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
