/**
 * Milliseconds without any progress after which what is waited for counts as lost: longer than a busy machine lets a
 * process stand still.
 */
export const PATIENCE_MS = 60_000;

/** A wait that is bounded by progress, not by the clock. */
export interface Patience {
  /** There is progress: the bound begins anew. */
  moved(): void;
  end(): void;
}

/** Calls `giveUp` once there was no progress for `silenceMs`. To be ended by whoever waits. */
export function createPatience(giveUp: () => void, silenceMs: number = PATIENCE_MS): Patience {
  let moves = 0;
  let isOver = false;
  const timer = setTimeout(() => {
    const seen = moves;
    // Input that is there already is read first: it may be this process that stood still.
    setImmediate(() => {
      if (seen === moves && !isOver) giveUp();
    });
  }, silenceMs);
  return {
    moved() {
      moves += 1;
      if (!isOver) timer.refresh();
    },
    end() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}
