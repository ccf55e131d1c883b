/** Runs a task at most once at a time, however often callers ask. */
export interface SingleRun {
  /** Runs the task now or, if it is running, once more afterwards. Resolves when the current run has ended. */
  run(): Promise<void>;
  /** Runs the task immediately, even if another run is stuck. */
  restart(): Promise<void>;
}

/** The task must never reject. */
export function createSingleRun(task: () => Promise<unknown>): SingleRun {
  let current: Promise<void> | undefined;
  let isDue = false;

  async function begin(): Promise<void> {
    isDue = false;
    const own = execute(() => current === own);
    current = own;
    return own;
  }

  async function execute(isCurrent: () => boolean): Promise<void> {
    await task();
    if (!isCurrent()) return;
    current = undefined;
    if (isDue) void begin();
  }

  return {
    run() {
      if (current === undefined) return begin();
      isDue = true;
      return current;
    },
    restart: begin,
  };
}
