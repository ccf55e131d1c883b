import type { Logger } from "pino";
import type { Service } from "./service.ts";

/** Signals closer together than this are one. */
const SAME_SIGNAL_MS = 1_000;
/** The part of the grace kept for closing: last words of cut answers, open calls, connections. Each is bounded. */
const CLOSE_MS = 7_000;

const LAUNCHER_POLL_MS = 500;

interface EndOptions {
  exitCode?: number;
  /** Longest that the end may take. Zero where running work could not be written any more, so that waiting helps nobody. */
  graceMs?: number;
}

export interface Shutdown {
  begin(why: string, options?: EndOptions): void;
  isBegun(): boolean;
}

/** Ends the process in order the first time, also while it starts, and at once the second time. */
export function createEnding(starting: Promise<Pick<Service, "close">>, usualGraceMs: number, log: Logger): Shutdown {
  let askedAt: number | undefined;

  async function end(why: string, { exitCode = 0, graceMs = usualGraceMs }: EndOptions): Promise<void> {
    if (askedAt !== undefined) {
      // Ctrl-C at a terminal reaches this process twice: from the terminal, and passed on by npm.
      if (performance.now() - askedAt > SAME_SIGNAL_MS) process.exit(1);
      return;
    }
    askedAt = performance.now();
    const longestMs = Math.max(graceMs, CLOSE_MS);
    log.info(`${why}: finishing the running work within ${longestMs / 1_000} s; a second signal stops it at once`);
    setTimeout(() => {
      log.error("the service did not end in time and is cut; open work is taken up again at the next start");
      process.exit(1);
    }, longestMs);
    // A start that failed says so itself, and has left nothing to close.
    const service = await starting.catch(() => undefined);
    await service?.close(longestMs - CLOSE_MS);
    process.exit(exitCode);
  }

  return { begin: (why, options = {}) => void end(why, options), isBegun: () => askedAt !== undefined };
}

/**
 * Calls `onGone` once when the parent process has ended: a killed launcher such as npm takes nothing along, and the
 * survivor would hold port and data. Not for a process whose parent leaves on purpose. Keeps no process alive.
 */
export function watchLauncher(onGone: () => void): void {
  const launcher = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === launcher) return;
    clearInterval(timer);
    onGone();
  }, LAUNCHER_POLL_MS).unref();
}
