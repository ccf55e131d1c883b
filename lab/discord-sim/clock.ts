/** The simulator's time in Unix milliseconds. Tests can only move it forward. */
export interface Clock {
  now(): number;
  advance(ms: number): void;
}

/** A clock that runs at normal speed. Tests can move it ahead of real time. */
export function createClock(): Clock {
  return toClock(Date.now);
}

export function createStillClock(startMs = Date.now()): Clock {
  return toClock(() => startMs);
}

function toClock(read: () => number): Clock {
  let aheadMs = 0;
  return {
    now: () => read() + aheadMs,
    advance(ms) {
      if (!(ms >= 0)) throw new Error(`The clock cannot go back: advance(${ms}).`);
      aheadMs += ms;
    },
  };
}
