/** A wait fails after this many milliseconds without progress. Even a busy machine never pauses a process that long. */
export const PATIENCE_MS = 60_000;

/** A timeout that restarts with each progress. */
export interface Patience {
  moved(): void;
  end(): void;
}

/** Calls `giveUp` after `silenceMs` without progress. The caller must call `end` after the wait. */
export function createPatience(giveUp: () => void, silenceMs: number = PATIENCE_MS): Patience {
  let moves = 0;
  let isOver = false;
  const timer = setTimeout(() => {
    const seen = moves;
    // Reads pending input first, because this process may have been paused.
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
