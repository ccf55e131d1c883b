const POLL_MS = 500;

/**
 * Calls `onGone` once when the process that started this one has ended. A launcher such as npm that is killed takes
 * nothing along, and what it left running would hold the port and the data against the next start. Keeps no process
 * alive. Not for a process whose parent leaves on purpose, as a daemon's does.
 */
export function watchLauncher(onGone: () => void): void {
  const launcher = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === launcher) return;
    clearInterval(timer);
    onGone();
  }, POLL_MS).unref();
}
