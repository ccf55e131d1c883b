/**
 * A wait without progress fails after this many milliseconds. A busy machine never pauses a process for as long as
 * this.
 */
export const PATIENCE_MS = 60_000;

/** A timeout that restarts when there is progress. */
export interface Patience {
  /** Reports progress and restarts the timeout. */
  moved(): void;
  end(): void;
}

/** Calls `giveUp` after `silenceMs` without progress. The caller must call `end` when the wait is over. */
export function createPatience(giveUp: () => void, silenceMs: number = PATIENCE_MS): Patience {
  let moves = 0;
  let isOver = false;
  const timer = setTimeout(() => {
    const seen = moves;
    // Reads pending input first, because this process itself may have been paused.
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
